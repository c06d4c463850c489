"""What is to be removed: decided in the database, then ended there."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.storage_maintenance import ArtifactOrphaned, OrphanReason
from mindbus.sql.database import Database
from storage_service.care.conditions import is_unused, stray_reason
from storage_service.care.keys import Content
from storage_service.care.registry import Removal, Unused
from storage_service.care.sql_notices import notice_of
from storage_service.care.tables import RemovalRow
from storage_service.inserts import insert_unless_taken
from storage_service.models import DELETING, GONE, LIVE, PINNED, BlobRow, ManifestRow, SpentUploadRow


class SqlRemovals:
    """The part of the registry that decides on files; on a content, with its row held as a registration holds it."""

    def __init__(self, database: Database, clock: Callable[[], datetime], retention: Mapping[str, timedelta]) -> None:
        self.database = database
        self.clock = clock
        self.retention = retention

    async def unused(self, before: datetime, after: str, limit: int) -> Sequence[Unused]:
        """As in CareRegistry."""
        query = (
            select(BlobRow.sha256, BlobRow.generation, func.coalesce(BlobRow.size_bytes, 0))
            .where(is_unused(before, self.clock(), self.retention), BlobRow.sha256 > after)
            .order_by(BlobRow.sha256)
            .limit(limit)
        )
        async with self.database.reading() as session:
            rows = (await session.execute(query)).all()
        return [Unused(Content(sha256, generation), size_bytes) for sha256, generation, size_bytes in rows]

    async def condemn(self, removal: Removal, before: datetime) -> bool:
        """As in CareRegistry."""
        async with self.database.transaction() as session:
            blob = None if removal.content is None else await _locked(session, removal.content.sha256)
            if blob is None or removal.content is None or blob.generation != removal.content.generation:
                return False
            is_pinned = blob.pinned_until is None or blob.pinned_until >= before
            if blob.state not in (PINNED, LIVE) or is_pinned or await _is_held(session, removal.content):
                return False
            blob.state = DELETING
            blob.condemned_at = self.clock()
            await self._remove(session, removal)
        return True

    async def strays(self, contents: Collection[Content]) -> Mapping[Content, OrphanReason]:
        """As in CareRegistry."""
        if not contents:
            return {}
        blobs_found = select(BlobRow).where(BlobRow.sha256.in_({content.sha256 for content in contents}))
        held_found = select(ManifestRow.sha256, ManifestRow.generation).where(
            tuple_(ManifestRow.sha256, ManifestRow.generation).in_([(c.sha256, c.generation) for c in contents]),
            ManifestRow.expired_at.is_(None),
        )
        async with self.database.reading() as session:
            blobs = {blob.sha256: blob for blob in await session.scalars(blobs_found)}
            held = {Content(*row) for row in await session.execute(held_found)}
        reasons = {
            content: stray_reason(blobs.get(content.sha256), content.generation, is_held=content in held)
            for content in contents
        }
        return {content: reason for content, reason in reasons.items() if reason is not None}

    async def outlaw(self, removal: Removal) -> bool:
        """As in CareRegistry."""
        async with self.database.transaction() as session:
            if removal.content is not None and not await self._fence(session, removal.content):
                return False
            return await self._remove(session, removal)

    async def unspent(self, uploads: Collection[str]) -> Collection[str]:
        """As in CareRegistry."""
        query = select(SpentUploadRow.upload_key).where(SpentUploadRow.upload_key.in_(uploads))
        async with self.database.reading() as session:
            return set(uploads) - set(await session.scalars(query))

    async def give_up(self, removal: Removal) -> bool:
        """As in CareRegistry."""
        async with self.database.transaction() as session:
            if await session.get(SpentUploadRow, removal.key) is not None:
                return False
            return await self._remove(session, removal)

    async def removals(self, limit: int) -> Sequence[Removal]:
        """As in CareRegistry."""
        query = select(RemovalRow).order_by(RemovalRow.decided_at, RemovalRow.key).limit(limit)
        async with self.database.reading() as session:
            return [_as_removal(row) for row in await session.scalars(query)]

    async def finish(self, removal: Removal, *, is_there: bool) -> None:
        """As in CareRegistry."""
        done = delete(RemovalRow).where(RemovalRow.key == removal.key).returning(RemovalRow.key)
        async with self.database.transaction() as session:
            if removal.content is not None:
                blob = await _locked(session, removal.content.sha256)
                if blob is not None and (blob.state, blob.generation) == (DELETING, removal.content.generation):
                    blob.state = GONE
            is_first = (await session.execute(done)).first() is not None
            if is_first and is_there:
                told = ArtifactOrphaned(
                    key=removal.key,
                    orphan_key=removal.target,
                    size_bytes=removal.size_bytes,
                    reason=removal.reason,
                )
                session.add(notice_of(told))

    async def _fence(self, session: AsyncSession, content: Content) -> bool:
        """Never let this generation be given out; whether it belongs to nobody."""
        taken = {"sha256": content.sha256, "generation": content.generation, "state": GONE}
        await insert_unless_taken(session, BlobRow, **taken)
        blob = await _locked(session, content.sha256)
        is_held = await _is_held(session, content)
        if stray_reason(blob, content.generation, is_held=is_held) is None or blob is None:
            return False
        blob.generation = max(blob.generation, content.generation)
        return True

    async def _remove(self, session: AsyncSession, removal: Removal) -> bool:
        content = removal.content
        values: dict[str, Any] = {
            "key": removal.key,
            "target": removal.target,
            "reason": removal.reason,
            "size_bytes": removal.size_bytes,
            "sha256": content.sha256 if content else None,
            "generation": content.generation if content else None,
            "decided_at": self.clock(),
        }
        return await insert_unless_taken(session, RemovalRow, **values)


async def _locked(session: AsyncSession, sha256: str) -> BlobRow | None:
    return await session.scalar(select(BlobRow).where(BlobRow.sha256 == sha256).with_for_update())


async def _is_held(session: AsyncSession, content: Content) -> bool:
    held = select(ManifestRow.id).where(
        ManifestRow.sha256 == content.sha256,
        ManifestRow.generation == content.generation,
        ManifestRow.expired_at.is_(None),
    )
    return await session.scalar(held.limit(1)) is not None


def _as_removal(row: RemovalRow) -> Removal:
    content = None if row.sha256 is None or row.generation is None else Content(row.sha256, row.generation)
    return Removal(row.key, row.target, row.reason, row.size_bytes, content)  # type: ignore[arg-type]  # as written

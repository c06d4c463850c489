"""Removals: which artifacts and contents are due, unused or stray, decided and completed in the database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, case, delete, exists, false, literal, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.storage_maintenance import ArtifactOrphaned, OrphanReason
from mindbus.sql.database import Database
from storage_service.blobs import ContentGeneration, content_of
from storage_service.maintenance.registry import Removal, UnusedContent
from storage_service.rows import insert_if_absent, lock_blob, lock_or_create_blob, packed_of, placed_content
from storage_service.tables import (
    DELETING,
    GONE,
    LIVE,
    PINNED,
    BlobRow,
    ManifestRow,
    NotificationRow,
    RemovalRow,
    SpentUploadRow,
    TraceRow,
)

_RUNNING = (
    exists().where(TraceRow.trace_id == ManifestRow.trace_id, TraceRow.closed_at.is_(None)).correlate(ManifestRow)
)


def due_reason(now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[Any]:
    """SQL expression for why an artifact is due."""
    return case((_own(now), literal("own")), (_type(now, retention), literal("type")), else_=literal("process"))


def is_due(now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[bool]:
    """Condition on an artifact: past the earliest retention of maker, operator and process, whose run has ended."""
    ended = select(TraceRow.trace_id).where(TraceRow.kept_until <= now)
    over = or_(_own(now), _type(now, retention), ManifestRow.trace_id.in_(ended))
    return and_(ManifestRow.expired_at.is_(None), over, ~_RUNNING)


def is_unused(before: datetime, now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[bool]:
    """Condition on a content: no pin since `before`, and no artifact but such as are due."""
    holder = exists().where(
        ManifestRow.sha256 == BlobRow.sha256,
        ManifestRow.generation == BlobRow.generation,
        ManifestRow.expired_at.is_(None),
        ~is_due(now, retention),
    )
    return and_(BlobRow.state.in_((PINNED, LIVE)), BlobRow.pinned_until < before, ~holder.correlate(BlobRow))


def stray_reason(blob: BlobRow | None, content: ContentGeneration, *, is_held: bool) -> OrphanReason | None:
    """Why an object in the store belongs to no artifact; None where it does, or may.

    A content may have been packed more than once; where it was first committed, it is.
    A generation beyond that of a content in use comes from a later state of a database that was restored since: it
    waits for a rebuild, or for the removal of the content.
    """
    generation = content.generation
    if blob is not None and (blob.state, blob.generation) == (LIVE, generation) and content.packed is not None:
        return None if packed_of(blob) == content.packed else "unused"
    if is_held:
        return None
    if blob is None:
        return "unknown"
    if generation < blob.generation:
        return "outdated"
    if blob.state == GONE:
        return "unused" if generation == blob.generation else "unknown"
    return None


def _own(now: datetime) -> ColumnElement[bool]:
    # Never NULL, so that its negation is right.
    return and_(ManifestRow.retention_until.is_not(None), ManifestRow.retention_until <= now)


def _type(now: datetime, retention: Mapping[str, timedelta]) -> ColumnElement[bool]:
    by_type = [
        and_(ManifestRow.artifact_type == artifact_type, ManifestRow.committed_at <= now - period)
        for artifact_type, period in retention.items()
    ]
    return or_(false(), *by_type)


@dataclass(frozen=True)
class SqlRemovals:
    """The part of MaintenanceRegistry that decides on files; on a content, with its row locked."""

    database: Database
    clock: Callable[[], datetime]
    retention: Mapping[str, timedelta]

    async def unused_contents(self, before: datetime, after: str, limit: int) -> Sequence[UnusedContent]:
        query = (
            select(BlobRow)
            .where(is_unused(before, self.clock(), self.retention), BlobRow.sha256 > after)
            .order_by(BlobRow.sha256)
            .limit(limit)
        )
        async with self.database.reading() as session:
            return [UnusedContent(placed_content(row), row.size_bytes or 0) for row in await session.scalars(query)]

    async def retire(self, removal: Removal, before: datetime) -> bool:
        async with self.database.transaction() as session:
            blob = None if removal.content is None else await lock_blob(session, removal.content.sha256)
            if blob is None or removal.content is None or blob.generation != removal.content.generation:
                return False
            is_pinned = blob.pinned_until is None or blob.pinned_until >= before
            if blob.state not in (PINNED, LIVE) or is_pinned or await is_held(session, removal.content):
                return False
            blob.state = DELETING
            blob.condemned_at = self.clock()
            await self._remove(session, removal)
        return True

    async def strays(self, contents: Collection[ContentGeneration]) -> Mapping[ContentGeneration, OrphanReason]:
        if not contents:
            return {}
        blobs_found = select(BlobRow).where(BlobRow.sha256.in_({content.sha256 for content in contents}))
        held_found = select(ManifestRow.sha256, ManifestRow.generation).where(
            tuple_(ManifestRow.sha256, ManifestRow.generation).in_([(c.sha256, c.generation) for c in contents]),
            ManifestRow.expired_at.is_(None),
        )
        async with self.database.reading() as session:
            blobs = {blob.sha256: blob for blob in await session.scalars(blobs_found)}
            in_use = {(row.sha256, row.generation) for row in await session.execute(held_found)}
        reasons = {
            content: stray_reason(
                blobs.get(content.sha256), content, is_held=(content.sha256, content.generation) in in_use
            )
            for content in contents
        }
        return {content: reason for content, reason in reasons.items() if reason is not None}

    async def remove_stray(self, removal: Removal) -> bool:
        async with self.database.transaction() as session:
            if removal.content is not None and not await self._fence(session, removal.content):
                return False
            return await self._remove(session, removal)

    async def unspent(self, uploads: Collection[str]) -> Collection[str]:
        query = select(SpentUploadRow.upload_key).where(SpentUploadRow.upload_key.in_(uploads))
        async with self.database.reading() as session:
            return set(uploads) - set(await session.scalars(query))

    async def give_up(self, removal: Removal) -> bool:
        async with self.database.transaction() as session:
            if await session.get(SpentUploadRow, removal.key) is not None:
                return False
            return await self._remove(session, removal)

    async def removals(self, limit: int) -> Sequence[Removal]:
        query = select(RemovalRow).order_by(RemovalRow.decided_at, RemovalRow.key).limit(limit)
        async with self.database.reading() as session:
            return [_as_removal(row) for row in await session.scalars(query)]

    async def finish(self, removal: Removal, *, is_there: bool) -> None:
        done = delete(RemovalRow).where(RemovalRow.key == removal.key).returning(RemovalRow.key)
        async with self.database.transaction() as session:
            if removal.content is not None:
                blob = await lock_blob(session, removal.content.sha256)
                if blob is not None and (blob.state, blob.generation) == (DELETING, removal.content.generation):
                    blob.state = GONE
            is_first = (await session.execute(done)).first() is not None
            if is_first and is_there:
                event = ArtifactOrphaned(
                    key=removal.key, orphan_key=removal.target, size_bytes=removal.size_bytes, reason=removal.reason
                )
                session.add(NotificationRow.of(event))

    async def _fence(self, session: AsyncSession, content: ContentGeneration) -> bool:
        """Keep this generation from ever being assigned; whether it belongs to no artifact."""
        blob = await lock_or_create_blob(session, content.sha256, content.generation)
        if stray_reason(blob, content, is_held=await is_held(session, content)) is None:
            return False
        blob.generation = max(blob.generation, content.generation)
        return True

    async def _remove(self, session: AsyncSession, removal: Removal) -> bool:
        return await insert_if_absent(session, RemovalRow, **as_removal_row(removal, self.clock()))


async def is_held(session: AsyncSession, content: ContentGeneration) -> bool:
    """Whether an artifact that has not expired has this content."""
    holders = select(ManifestRow.id).where(
        ManifestRow.sha256 == content.sha256,
        ManifestRow.generation == content.generation,
        ManifestRow.expired_at.is_(None),
    )
    return await session.scalar(holders.limit(1)) is not None


def as_removal_row(removal: Removal, decided_at: datetime) -> dict[str, Any]:
    content = removal.content
    return {
        "key": removal.key,
        "target": removal.target,
        "reason": removal.reason,
        "size_bytes": removal.size_bytes,
        "sha256": content.sha256 if content else None,
        "generation": content.generation if content else None,
        "decided_at": decided_at,
    }


def _as_removal(row: RemovalRow) -> Removal:
    return Removal(row.key, row.target, row.reason, row.size_bytes, content_of(row.key))  # type: ignore[arg-type]  # as written

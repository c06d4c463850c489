"""Puts back into the database what the store remembers."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Literal, Protocol

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from mindbus.sql.database import Database
from storage_service.care.copies import ManifestCopy
from storage_service.inserts import insert_unless_taken
from storage_service.models import DELETING, GONE, LIVE, BlobRow, InputRow, ManifestRow, TraceMemberRow
from storage_service.rows import as_row
from storage_service.spans import next_position

Restored = Literal["restored", "present", "no predecessor", "being collected", "another is there"]


class RebuildRegistry(Protocol):
    """What a rebuild reads and writes."""

    async def unknown_contents(self, sha256s: Collection[str]) -> Collection[str]:
        """Those of the digests that the database has never heard of."""

    async def restore(self, copied: ManifestCopy) -> Restored:
        """Make it an artifact again, in one transaction; what it was made from must be there first."""


class SqlRebuilding:
    """As in RebuildRegistry."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database = database
        self.clock = clock

    async def unknown_contents(self, sha256s: Collection[str]) -> Collection[str]:
        """As in RebuildRegistry."""
        query = select(BlobRow.sha256).where(BlobRow.sha256.in_(sha256s))
        async with self.database.reading() as session:
            return set(sha256s) - set(await session.scalars(query))

    async def restore(self, copied: ManifestCopy) -> Restored:
        """As in RebuildRegistry."""
        manifest = copied.manifest
        async with self.database.transaction() as session:
            if not await self._hold_content(session, copied):
                return "being collected"
            if await session.get(ManifestRow, manifest.id) is not None:
                return "present"
            if manifest.supersedes and await session.get(ManifestRow, manifest.supersedes) is None:
                return "no predecessor"
            row = as_row(manifest, logical_id=copied.logical_id, generation=copied.generation, now=copied.committed_at)
            row["position"] = await next_position(session, row["created_at"])
            if not await insert_unless_taken(session, ManifestRow, **row, expired_at=copied.expired_at):
                return "another is there"
            await self._add_inputs(session, copied)
            for member in copied.members:
                await insert_unless_taken(session, TraceMemberRow, trace_id=manifest.trace_id, member=member)
        return "restored"

    async def _hold_content(self, session: AsyncSession, copied: ManifestCopy) -> bool:
        """Count this generation as given out, its bytes as needed; False while they are on their way out."""
        sha256, generation = copied.manifest.sha256, copied.generation
        await insert_unless_taken(session, BlobRow, sha256=sha256, generation=generation, state=GONE)
        blob = (await session.scalars(select(BlobRow).where(BlobRow.sha256 == sha256).with_for_update())).one()
        if copied.expired_at is not None:
            blob.generation = max(blob.generation, generation)
            return True
        if blob.state == DELETING and blob.generation <= generation:
            return False
        if blob.generation <= generation:
            blob.generation, blob.state = generation, LIVE
            blob.size_bytes, blob.pinned_until = copied.manifest.size_bytes, self.clock()
        return True

    async def _add_inputs(self, session: AsyncSession, copied: ManifestCopy) -> None:
        context = copied.manifest.context
        wanted = set(context.input_artifacts) if context else set()
        there = await session.scalars(select(ManifestRow.id).where(ManifestRow.id.in_(wanted)))
        edges = [{"artifact_id": copied.manifest.id, "input_id": each} for each in sorted(there)]
        if edges:
            await session.execute(insert(InputRow), edges)

"""The care registry in storage's own database."""

from collections.abc import Collection, Sequence

from sqlalchemy import func, select

from bus_schema.storage_maintenance import ArtifactExpired
from storage_service.care.conditions import due_reason, is_due
from storage_service.care.keys import Content
from storage_service.care.registry import Due, Holdings, Kept
from storage_service.care.sql_notices import SqlNotices, notice_of
from storage_service.care.sql_rebuilding import SqlRebuilding
from storage_service.care.sql_removals import SqlRemovals
from storage_service.models import LIVE, BlobRow, ManifestRow
from storage_service.rows import as_manifest


class SqlCareRegistry(SqlRemovals, SqlNotices, SqlRebuilding):
    """As in CareRegistry."""

    async def holdings(self) -> Holdings:
        """As in CareRegistry."""
        artifacts = select(func.count()).select_from(ManifestRow).where(ManifestRow.expired_at.is_(None))
        contents = select(func.count()).select_from(BlobRow).where(BlobRow.state == LIVE)
        async with self.database.reading() as session:
            return Holdings(await session.scalar(artifacts) or 0, await session.scalar(contents) or 0)

    async def kept(self, after: int, limit: int) -> Sequence[Kept]:
        """As in CareRegistry."""
        unexpired = select(ManifestRow).where(ManifestRow.expired_at.is_(None), ManifestRow.position > after)
        async with self.database.reading() as session:
            rows = await session.scalars(unexpired.order_by(ManifestRow.position).limit(limit))
            return [Kept(row.id, row.position, Content(row.sha256, row.generation), row.size_bytes) for row in rows]

    async def due(self, after: int, limit: int) -> Sequence[Due]:
        """As in CareRegistry."""
        now = self.clock()
        query = (
            select(ManifestRow.id, ManifestRow.position, ManifestRow.size_bytes, due_reason(now, self.retention))
            .where(is_due(now, self.retention), ManifestRow.position > after)
            .order_by(ManifestRow.position)
            .limit(limit)
        )
        async with self.database.reading() as session:
            return [Due(*row) for row in await session.execute(query)]

    async def expire(self, due: Due) -> bool:
        """As in CareRegistry."""
        now = self.clock()
        query = select(ManifestRow).where(ManifestRow.id == due.artifact_id, is_due(now, self.retention))
        async with self.database.transaction() as session:
            row = await session.scalar(query.with_for_update(of=ManifestRow))
            if row is None:
                return False
            row.expired_at = now
            told = ArtifactExpired(
                artifact=as_manifest(row).ref,
                trace_id=row.trace_id,
                step_id=row.step_id,
                artifact_type=row.artifact_type,
                owner=row.owner,
                reason=due.reason,
            )
            session.add(notice_of(told, row.trace_id, row.step_id))
        return True

    async def unknown_artifacts(self, artifact_ids: Collection[str]) -> Collection[str]:
        """As in CareRegistry."""
        query = select(ManifestRow.id).where(ManifestRow.id.in_(artifact_ids))
        async with self.database.reading() as session:
            return set(artifact_ids) - set(await session.scalars(query))

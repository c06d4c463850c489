"""The maintenance registry in storage's own database."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.messages import Event, message_class
from bus_schema.storage_maintenance import ArtifactExpired
from storage_service.maintenance.manifest_copies import ManifestCopy
from storage_service.maintenance.registry import DueArtifact, Notification, RestoreOutcome, StoredArtifact
from storage_service.maintenance.sql_removals import SqlRemovals, due_reason, is_due
from storage_service.rows import (
    PLACED_MANIFESTS,
    NewManifest,
    as_manifest,
    inputs_of,
    insert_if_absent,
    insert_inputs,
    insert_manifests,
    lock_or_create_blob,
    placed_content,
)
from storage_service.tables import DELETING, LIVE, BlobRow, ManifestRow, NotificationRow, ProgressRow, TraceMemberRow


class SqlMaintenanceRegistry(SqlRemovals):
    async def artifact_count(self) -> int:
        unexpired = select(func.count()).select_from(ManifestRow).where(ManifestRow.expired_at.is_(None))
        async with self.database.reading() as session:
            return await session.scalar(unexpired) or 0

    async def stored_artifacts(self, after: int, limit: int) -> Sequence[StoredArtifact]:
        unexpired = PLACED_MANIFESTS.where(ManifestRow.expired_at.is_(None), ManifestRow.position > after)
        async with self.database.reading() as session:
            rows = await session.execute(unexpired.order_by(ManifestRow.position).limit(limit))
            return [StoredArtifact(row.id, row.position, placed_content(row), row.size_bytes) for row in rows]

    async def due(self, after: int, limit: int) -> Sequence[DueArtifact]:
        now = self.clock()
        query = (
            select(ManifestRow.id, ManifestRow.position, ManifestRow.size_bytes, due_reason(now, self.retention))
            .where(is_due(now, self.retention), ManifestRow.position > after)
            .order_by(ManifestRow.position)
            .limit(limit)
        )
        async with self.database.reading() as session:
            return [DueArtifact(*row) for row in await session.execute(query)]

    async def expire(self, due: DueArtifact) -> bool:
        now = self.clock()
        query = select(ManifestRow).where(ManifestRow.id == due.artifact_id, is_due(now, self.retention))
        async with self.database.transaction() as session:
            row = await session.scalar(query.with_for_update(of=ManifestRow))
            if row is None:
                return False
            row.expired_at = now
            event = ArtifactExpired(
                artifact=as_manifest(row).ref,
                trace_id=row.trace_id,
                step_id=row.step_id,
                artifact_type=row.artifact_type,
                owner=row.owner,
                reason=due.reason,
            )
            session.add(NotificationRow.of(event, row.trace_id, row.step_id))
        return True

    async def unknown_artifacts(self, artifact_ids: Collection[str]) -> Collection[str]:
        query = select(ManifestRow.id).where(ManifestRow.id.in_(artifact_ids))
        async with self.database.reading() as session:
            return set(artifact_ids) - set(await session.scalars(query))

    async def notices(self, limit: int) -> Sequence[Notification]:
        query = select(NotificationRow).order_by(NotificationRow.seq).limit(limit)
        async with self.database.reading() as session:
            return [_as_notification(row) for row in await session.scalars(query)]

    async def delete_notifications(self, seqs: Collection[int]) -> None:
        await self.database.session.execute(delete(NotificationRow).where(NotificationRow.seq.in_(seqs)))

    async def mark(self, name: str) -> tuple[str, datetime] | None:
        async with self.database.reading() as session:
            row = await session.get(ProgressRow, name)
            return None if row is None else (row.value, row.noted_at)

    async def set_progress(self, name: str, value: str) -> None:
        async with self.database.transaction() as session:
            await session.merge(ProgressRow(name=name, value=value, noted_at=self.clock()))

    async def unknown_contents(self, sha256s: Collection[str]) -> Collection[str]:
        query = select(BlobRow.sha256).where(BlobRow.sha256.in_(sha256s))
        async with self.database.reading() as session:
            return set(sha256s) - set(await session.scalars(query))

    async def restore(self, copied: ManifestCopy) -> RestoreOutcome:
        manifest = copied.manifest
        async with self.database.transaction() as session:
            if not await self._hold_content(session, copied):
                return "being collected"
            if await session.get(ManifestRow, manifest.id) is not None:
                return "present"
            if manifest.supersedes and await session.get(ManifestRow, manifest.supersedes) is None:
                return "no predecessor"
            connection = await session.connection()
            row = NewManifest(manifest, copied.logical_id, copied.generation, copied.committed_at, copied.expired_at)
            if not await connection.run_sync(insert_manifests, [row]):
                return "another is there"
            present = select(ManifestRow.id).where(ManifestRow.id.in_(inputs_of(manifest)))
            await connection.run_sync(insert_inputs, {manifest.id: (await session.scalars(present)).all()})
            for member in copied.members:
                await insert_if_absent(session, TraceMemberRow, trace_id=manifest.trace_id, member=member)
        return "restored"

    async def _hold_content(self, session: AsyncSession, copied: ManifestCopy) -> bool:
        """Count this generation as used, its bytes as needed; False while they are being removed."""
        sha256, generation = copied.manifest.sha256, copied.generation
        blob = await lock_or_create_blob(session, sha256, generation)
        if copied.expired_at is not None:
            blob.generation = max(blob.generation, generation)
            return True
        if blob.state == DELETING and blob.generation <= generation:
            return False
        if blob.generation <= generation:
            blob.generation, blob.state = generation, LIVE
            blob.size_bytes, blob.pinned_until = copied.manifest.size_bytes, self.clock()
            packed = copied.packed
            blob.pack, blob.pack_offset = (packed.pack, packed.offset) if packed else (None, None)
        return True


def _as_notification(row: NotificationRow) -> Notification:
    event = message_class(row.type).model_validate(row.data)
    if not isinstance(event, Event):
        raise TypeError(f"{row.type} is not an event")
    return Notification(row.seq, event, row.trace_id, row.step_id)

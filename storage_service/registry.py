"""The registry in storage's own database: pins, commits, spent uploads."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.artifacts import Manifest
from mindbus.errors import TemporaryFailure
from mindbus.principal import Principal
from mindbus.sql.database import Database
from storage_service.acl import not_found, readable_by, supersedable_by
from storage_service.errors import Forked, NoSuchInput, NotTheNextVersion, NotYoursToSupersede
from storage_service.maintenance.manifest_copies import ManifestCopy, SpentUpload
from storage_service.rows import as_manifest, as_row, insert_unless_taken, next_position
from storage_service.tables import (
    DELETING,
    GONE,
    LIVE,
    PINNED,
    BlobRow,
    InputRow,
    ManifestRow,
    SpentUploadRow,
    TraceMemberRow,
)

# Longer than a copy may take; a redelivery renews a pin that runs out.
PINNED_FOR = timedelta(hours=1)
_SOON = timedelta(seconds=1)


class PinLost(TemporaryFailure):
    """The content has been collected since it was pinned; registered again, it gets its next generation."""


class Overtaken(Exception):
    """Another delivery has committed an artifact of this id."""


class SqlRegistry:
    """Registry and SpentUploads in SQL."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database = database
        self.clock = clock

    async def find(self, artifact_id: str) -> Manifest | None:
        async with self.database.reading() as session:
            row = await session.get(ManifestRow, artifact_id)
        return None if row is None else as_manifest(row)

    async def logical_id(self, manifest: Manifest, principal: Principal) -> str:
        if manifest.supersedes is None:
            return manifest.id
        may_supersede = supersedable_by(principal).label("may_supersede")
        query = select(ManifestRow, may_supersede).where(ManifestRow.id == manifest.supersedes, readable_by(principal))
        async with self.database.reading() as session:
            found = (await session.execute(query)).one_or_none()
            if found is None:
                raise await not_found(session, manifest.supersedes)
            newer = await session.scalar(select(ManifestRow.id).where(ManifestRow.supersedes == manifest.supersedes))
        predecessor, is_allowed = found
        if not is_allowed:
            raise NotYoursToSupersede(artifact_id=predecessor.id)
        if manifest.version != predecessor.version + 1:
            raise NotTheNextVersion(version=manifest.version, superseded_version=predecessor.version)
        if newer is not None:
            raise Forked(artifact_id=predecessor.id)
        return str(predecessor.logical_id)

    async def require_inputs(self, manifest: Manifest, principal: Principal) -> None:
        inputs = _inputs_of(manifest)
        if not inputs:
            return
        query = select(ManifestRow.id).where(ManifestRow.id.in_(inputs), readable_by(principal))
        async with self.database.reading() as session:
            found = set(await session.scalars(query))
        if missing := sorted(inputs - found):
            raise NoSuchInput(missing=missing)

    async def pin(self, sha256: str) -> int:
        async with self.database.transaction() as session:
            await insert_unless_taken(session, BlobRow, sha256=sha256, generation=0, state=GONE)
            blob = await _locked(session, sha256)
            if blob.state in (GONE, DELETING):
                blob.generation += 1
                blob.state = PINNED
            blob.pinned_until = self.clock() + PINNED_FOR
            return blob.generation

    async def commit(self, manifest: Manifest, *, logical_id: str, generation: int, upload: str) -> Manifest:
        session = self.database.session
        blob = await _locked(session, manifest.sha256)
        if blob.state not in (PINNED, LIVE) or blob.generation != generation:
            raise PinLost(delay=_SOON)
        row = as_row(manifest, logical_id=logical_id, generation=generation, now=self.clock())
        row["position"] = await next_position(session, row["created_at"])
        if not await insert_unless_taken(session, ManifestRow, **row):
            if await session.get(ManifestRow, manifest.id) is None:
                raise Forked(artifact_id=manifest.supersedes)
            raise Overtaken(manifest.id)
        blob.state = LIVE
        blob.size_bytes = manifest.size_bytes
        if inputs := _inputs_of(manifest):
            await session.execute(
                insert(InputRow), [{"artifact_id": manifest.id, "input_id": each} for each in sorted(inputs)]
            )
        await self.spend(upload, manifest.id)
        return as_manifest(await session.get_one(ManifestRow, manifest.id))

    async def spend(self, upload: str, artifact_id: str) -> None:
        spent = {"upload_key": upload, "artifact_id": artifact_id, "spent_at": self.clock()}
        await insert_unless_taken(self.database.session, SpentUploadRow, **spent)

    async def has_expired(self, artifact_id: str) -> bool:
        async with self.database.reading() as session:
            query = select(ManifestRow.expired_at).where(ManifestRow.id == artifact_id)
            return await session.scalar(query) is not None

    async def spent_uploads(self, limit: int) -> Sequence[SpentUpload]:
        query = select(SpentUploadRow).order_by(SpentUploadRow.spent_at).limit(limit)
        async with self.database.reading() as session:
            return [SpentUpload(row.upload_key, row.artifact_id) for row in await session.scalars(query)]

    async def copy_of(self, artifact_id: str) -> ManifestCopy:
        async with self.database.reading() as session:
            row = await session.get(ManifestRow, artifact_id)
            if row is None:
                raise LookupError(artifact_id)
            members = select(TraceMemberRow.member).where(TraceMemberRow.trace_id == row.trace_id)
            return ManifestCopy(
                manifest=as_manifest(row),
                logical_id=row.logical_id,
                generation=row.generation,
                committed_at=row.committed_at,
                expired_at=row.expired_at,
                members=tuple(sorted(await session.scalars(members))),
            )

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        async with self.database.transaction() as session:
            await session.execute(delete(SpentUploadRow).where(SpentUploadRow.upload_key.in_(uploads)))


async def _locked(session: AsyncSession, sha256: str) -> BlobRow:
    # SQLite has no row locks and needs none: its write transactions are serial.
    return (await session.scalars(select(BlobRow).where(BlobRow.sha256 == sha256).with_for_update())).one()


def _inputs_of(manifest: Manifest) -> set[str]:
    return set(manifest.context.input_artifacts) if manifest.context else set()

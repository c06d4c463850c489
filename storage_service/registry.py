"""Registry of artifacts: the database as registration sees it."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import Connection, Row, bindparam, case, delete, or_, select, update

from bus_schema.artifacts import Manifest
from bus_schema.identities import Principal
from bus_schema.uploads import PackPlace
from mindbus.errors import TemporaryFailure
from mindbus.files.keys import object_key
from mindbus.sql.database import Database
from mindbus.sql.statements import PreparedStatement
from storage_service.acl import is_talk_of_another, not_found, readable_as, readable_by, supersedable_by
from storage_service.blobs import ContentGeneration
from storage_service.errors import Forked, NoSuchInput, NotTheNextVersion, NotYoursToSupersede, NotYourTrace
from storage_service.maintenance.manifest_copies import ManifestCopy, SpentUpload, SpentUploads
from storage_service.rows import (
    PLACED_MANIFESTS,
    NewManifest,
    as_manifest,
    inputs_of,
    insert_inputs,
    insert_manifests,
    inserting,
    packed_of,
    pin_contents,
)
from storage_service.tables import LIVE, PINNED, BlobRow, ManifestRow, SpentUploadRow, TraceMemberRow

# Longer than a copy may take; a redelivery renews a pin that runs out.
PINNED_FOR = timedelta(hours=1)
_RETRY_DELAY = timedelta(seconds=1)


class PinLost(TemporaryFailure):
    """The content has been collected since it was pinned; registered again, it gets its next generation."""


class Overtaken(Exception):
    """Another delivery has committed an artifact of this id."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A staged file with its checked manifest; once its bytes are published, with their generation and place, too."""

    manifest: Manifest
    upload: str
    logical_id: str = ""
    generation: int = 0
    packed: PackPlace | None = None


CommitFailure = PinLost | Overtaken | Forked


class Registry(SpentUploads, Protocol):
    """The database as registration sees it; it does not check who may read the result."""

    async def find(self, artifact_ids: Collection[str], *, within: bool = False) -> Mapping[str, Manifest]:
        """The committed manifests of any owner by id; `within` the current transaction, those that it would meet."""

    async def logical_id(self, manifest: Manifest, principal: Principal) -> str:
        """The id of version 1. Raises NoSuchArtifact, NotYoursToSupersede, NotTheNextVersion, Forked."""

    async def require_entry(self, manifest: Manifest, principal: Principal) -> None:
        """Raises NotYourTrace where the manifest's trace is a run or a dialogue in which a guest takes no part."""

    async def require_inputs(self, manifest: Manifest, principal: Principal) -> None:
        """Raises NoSuchInput where an input does not exist, or its producer may not read it."""

    async def pin(self, sha256s: Collection[str]) -> Mapping[str, ContentGeneration]:
        """Protect contents from collection while they are published; one that has been has its place already."""

    async def commit(self, prepared: Sequence[Prepared]) -> Sequence[Manifest | CommitFailure]:
        """Insert manifests within the current transaction: each as it is now, or why it is not."""

    async def spend(self, upload: str, artifact_id: str) -> None:
        """Note within the current transaction that a staged file can be removed."""

    async def has_expired(self, artifact_id: str) -> bool:
        """Whether the artifact has expired."""


_MANIFESTS = ManifestRow.__table__
_MANIFEST = PreparedStatement(PLACED_MANIFESTS.where(_MANIFESTS.c.id == bindparam("artifact_id")))
_MANIFESTS_OF = PLACED_MANIFESTS.where(_MANIFESTS.c.id.in_(bindparam("artifact_ids", expanding=True)))
_MEMBERS = select(TraceMemberRow.trace_id, TraceMemberRow.member).where(
    TraceMemberRow.trace_id.in_(bindparam("trace_ids", expanding=True))
)
_SEEN_INPUTS = select(_MANIFESTS.c.id).where(
    ManifestRow.id.in_(bindparam("input_ids", expanding=True)), readable_as(bindparam("owner"), bindparam("trace"))
)
_ENLIVENING = PreparedStatement(
    update(BlobRow)
    .where(
        BlobRow.sha256 == bindparam("content"),
        BlobRow.generation == bindparam("pinned"),
        or_(BlobRow.state == PINNED, BlobRow.state == LIVE),
    )
    .values(
        state=LIVE,
        size_bytes=bindparam("size"),
        # Whoever commits a content first says where it is.
        pack=case((BlobRow.state == PINNED, bindparam("new_pack")), else_=BlobRow.pack),
        pack_offset=case((BlobRow.state == PINNED, bindparam("new_offset")), else_=BlobRow.pack_offset),
    )
)


@dataclass(frozen=True, slots=True)
class SqlRegistry:
    """Registry in storage's own database."""

    database: Database
    clock: Callable[[], datetime]

    async def find(self, artifact_ids: Collection[str], *, within: bool = False) -> Mapping[str, Manifest]:
        look = self.database.run if within else self.database.read
        return await look(lambda connection: {row.id: as_manifest(row) for row in _manifests(connection, artifact_ids)})

    async def logical_id(self, manifest: Manifest, principal: Principal) -> str:
        if manifest.supersedes is None:
            return manifest.id
        may_supersede = supersedable_by(principal).label("may_supersede")
        query = select(ManifestRow, may_supersede).where(ManifestRow.id == manifest.supersedes, readable_by(principal))
        async with self.database.reading() as session:
            row = (await session.execute(query)).one_or_none()
            if row is None:
                raise await not_found(session, manifest.supersedes)
            newer = await session.scalar(select(ManifestRow.id).where(ManifestRow.supersedes == manifest.supersedes))
        predecessor, is_allowed = row
        if not is_allowed:
            raise NotYoursToSupersede(artifact_id=predecessor.id)
        if manifest.version != predecessor.version + 1:
            raise NotTheNextVersion(version=manifest.version, superseded_version=predecessor.version)
        if newer is not None:
            raise Forked(artifact_id=predecessor.id)
        return str(predecessor.logical_id)

    async def require_entry(self, manifest: Manifest, principal: Principal) -> None:
        if not principal.is_guest:
            return
        members = select(TraceMemberRow.member).where(TraceMemberRow.trace_id == manifest.trace_id)
        listed = await self.database.read(lambda connection: {*connection.execute(members).scalars()})
        is_listed = principal.owner in (listed or {principal.owner})
        if not is_listed or is_talk_of_another(manifest.trace_id, principal.owner):
            raise NotYourTrace(trace_id=manifest.trace_id)

    async def require_inputs(self, manifest: Manifest, principal: Principal) -> None:
        if not (inputs := inputs_of(manifest)):
            return
        asked = {"input_ids": sorted(inputs), "owner": principal.owner, "trace": principal.trace_id}
        known_inputs = await self.database.read(lambda connection: {*connection.execute(_SEEN_INPUTS, asked).scalars()})
        if missing := sorted(inputs - known_inputs):
            raise NoSuchInput(missing=missing)

    async def pin(self, sha256s: Collection[str]) -> Mapping[str, ContentGeneration]:
        until = self.clock() + PINNED_FOR
        return await self.database.write(lambda connection: pin_contents(connection, sha256s, until))

    async def commit(self, prepared: Sequence[Prepared]) -> Sequence[Manifest | CommitFailure]:
        now = self.clock()

        def insert(connection: Connection) -> list[Manifest | CommitFailure]:
            # In one order everywhere: two that wait for each other's contents would both fail.
            ordered = sorted(prepared, key=lambda each: each.manifest.sha256)
            pinned = {each.manifest.id for each in ordered if _enliven(connection, each)}
            rows = [
                NewManifest(e.manifest, e.logical_id, e.generation, now) for e in prepared if e.manifest.id in pinned
            ]
            inserted = insert_manifests(connection, rows)
            new = [each for each in prepared if each.manifest.id in inserted]
            insert_inputs(connection, {each.manifest.id: inputs_of(each.manifest) for each in new})
            self._spend(connection, {each.upload: each.manifest.id for each in new})
            taken = {row.id for row in _manifests(connection, pinned - inserted)}
            return [_committed(each, pinned=pinned, inserted=inserted, taken=taken) for each in prepared]

        return await self.database.run(insert)

    async def spend(self, upload: str, artifact_id: str) -> None:
        await self.database.run(lambda connection: self._spend(connection, {upload: artifact_id}))

    def _spend(self, connection: Connection, uploads: Mapping[str, str]) -> None:
        now = self.clock()
        spent = [{"upload_key": key, "artifact_id": each, "spent_at": now} for key, each in uploads.items()]
        inserting(SpentUploadRow).all_of(connection, spent)

    async def has_expired(self, artifact_id: str) -> bool:
        rows = await self.database.read(lambda connection: _manifests(connection, [artifact_id]))
        return any(row.expired_at is not None for row in rows)

    async def spent_uploads(self, limit: int) -> Sequence[SpentUpload]:
        query = select(SpentUploadRow.__table__).order_by(SpentUploadRow.spent_at).limit(limit)
        rows = await self.database.read(lambda connection: connection.execute(query).all())
        return [SpentUpload(row.upload_key, row.artifact_id) for row in rows]

    async def copies_of(self, artifact_ids: Collection[str]) -> Mapping[str, ManifestCopy]:
        def read(connection: Connection) -> Mapping[str, ManifestCopy]:
            rows = _manifests(connection, artifact_ids)
            members: defaultdict[str, list[str]] = defaultdict(list)
            for trace_id, member in connection.execute(_MEMBERS, {"trace_ids": list({row.trace_id for row in rows})}):
                members[trace_id].append(member)
            return {
                row.id: ManifestCopy(
                    manifest=as_manifest(row),
                    logical_id=row.logical_id,
                    generation=row.generation,
                    committed_at=row.committed_at,
                    expired_at=row.expired_at,
                    members=tuple(sorted(members[row.trace_id])),
                    packed=packed_of(row),
                )
                for row in rows
            }

        return await self.database.read(read)

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        removal = delete(SpentUploadRow).where(SpentUploadRow.upload_key.in_(uploads))
        await self.database.write(lambda connection: connection.execute(removal))


def _manifests(connection: Connection, artifact_ids: Collection[str]) -> Sequence[Row[Any]]:
    if len(artifact_ids) == 1:
        return _MANIFEST.all(connection, {"artifact_id": next(iter(artifact_ids))})
    return connection.execute(_MANIFESTS_OF, {"artifact_ids": list(artifact_ids)}).all() if artifact_ids else []


def _enliven(connection: Connection, prepared: Prepared) -> bool:
    """Count a content as in use, if it is pinned in its generation."""
    manifest = prepared.manifest
    packed = prepared.packed
    content = {
        "content": manifest.sha256,
        "pinned": prepared.generation,
        "size": manifest.size_bytes,
        "new_pack": packed.pack if packed else None,
        "new_offset": packed.offset if packed else None,
    }
    return bool(_ENLIVENING.count(connection, content))


def _committed(
    prepared: Prepared, *, pinned: Set[str], inserted: Set[str], taken: Set[str]
) -> Manifest | CommitFailure:
    manifest = prepared.manifest
    if manifest.id in inserted:
        uri = object_key(manifest.sha256, prepared.generation)
        return manifest.model_copy(update={"uri": uri, "status": "completed"})
    if manifest.id not in pinned:
        return PinLost(delay=_RETRY_DELAY)
    return Overtaken(manifest.id) if manifest.id in taken else Forked(artifact_id=manifest.supersedes)

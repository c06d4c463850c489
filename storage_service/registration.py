"""Registration: a staged file becomes an artifact in three steps: promote, commit, clean up."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import Connection, bindparam, delete, select, update

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.files.keys import object_key
from mindbus.principal import Principal
from mindbus.sql.database import Database
from storage_service.acl import not_found, readable_as, readable_by, supersedable_by
from storage_service.blobs import Blobs, Declared, Labels
from storage_service.errors import (
    ArtifactTooLarge,
    Forked,
    IdTaken,
    NoSuchInput,
    NotTheNextVersion,
    NotTheProducer,
    NotYoursToSupersede,
    SecretInParameters,
)
from storage_service.maintenance.manifest_copies import ManifestCopy, SpentUpload, SpentUploads
from storage_service.rows import (
    as_manifest,
    inputs_of,
    insert_inputs,
    insert_manifest,
    inserting,
    pin_content,
)
from storage_service.tables import LIVE, PINNED, BlobRow, ManifestRow, SpentUploadRow, TraceMemberRow
from storage_service.uploads import upload_key

# Longer than a copy may take; a redelivery renews a pin that runs out.
PINNED_FOR = timedelta(hours=1)
_RETRY_DELAY = timedelta(seconds=1)

_SECRET = (
    *("secret", "password", "passwd", "passphrase", "credential", "authorization", "bearer", "cookie"),
    *("apikey", "accesskey", "privatekey", "signingkey", "пароль", "секрет"),
)
_SECRET_ALONE = {"token", "key", "auth", "pwd", "токен", "ключ"}
# Names of generation parameters, not of credentials.
_MARKERS = {"bos", "eos", "pad", "unk", "sep", "cls", "mask", "stop", "start", "end"}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAK = re.compile(r"[\W_]+")


def admit(manifest: Manifest, principal: Principal, *, max_bytes: int) -> None:
    """Check a manifest before any byte is read. Raises NotTheProducer, ArtifactTooLarge, SecretInParameters."""
    if owner_of(manifest.created_by) != principal.owner or manifest.owner != principal.owner:
        raise NotTheProducer(requester=principal.identity)
    if manifest.size_bytes > max_bytes:
        raise ArtifactTooLarge(size_bytes=manifest.size_bytes, max_bytes=max_bytes)
    names = manifest.context.model_params if manifest.context else {}
    if secrets := sorted(name for name in names if _looks_secret(name)):
        raise SecretInParameters(names=secrets)


def _looks_secret(name: str) -> bool:
    words = _BREAK.split(_CAMEL.sub("_", name).lower())
    joined = "".join(words)
    is_credential_token = words[-1] == "token" and not _MARKERS.intersection(words[:-1])
    return joined in _SECRET_ALONE or is_credential_token or any(secret in joined for secret in _SECRET)


class PinLost(TemporaryFailure):
    """The content has been collected since it was pinned; registered again, it gets its next generation."""


class Overtaken(Exception):
    """Another delivery has committed an artifact of this id."""


class Registry(SpentUploads, Protocol):
    """The database as registration sees it; it does not check who may read the result."""

    async def find(self, artifact_id: str, *, within: bool = False) -> Manifest | None:
        """The committed manifest of this id, of any owner; `within` the current transaction, what it would meet."""

    async def logical_id(self, manifest: Manifest, principal: Principal) -> str:
        """The id of version 1. Raises NoSuchArtifact, NotYoursToSupersede, NotTheNextVersion, Forked."""

    async def require_inputs(self, manifest: Manifest, principal: Principal) -> None:
        """Raises NoSuchInput where an input does not exist, or its producer may not read it."""

    async def pin(self, sha256: str) -> int:
        """Protect a content from collection while it is copied; returns the generation for its key."""

    async def commit(self, manifest: Manifest, *, logical_id: str, generation: int, upload: str) -> Manifest:
        """Insert the manifest within the current transaction. Raises PinLost, Overtaken, Forked."""

    async def spend(self, upload: str, artifact_id: str) -> None:
        """Note within the current transaction that a staged file can be removed."""

    async def has_expired(self, artifact_id: str) -> bool:
        """Whether the artifact has expired."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The artifact; `is_new` where this registration made it."""

    manifest: Manifest
    is_new: bool


@dataclass(frozen=True, slots=True)
class ArtifactRegistrar:
    """Registers artifacts in steps, each of which may be the last before a crash.

    The bytes are published before the manifest is committed and the staged file is removed after it, so that a manifest
    always has its bytes; whatever else a crash leaves is repeated or collected. The manifest is committed with the
    transaction of the current message.
    """

    registry: Registry
    blobs: Blobs
    root_url: str
    max_artifact_bytes: int

    async def register(self, manifest: Manifest, principal: Principal) -> Registered:
        """Raises Rejected; PinLost or OSError where trying again may help."""
        admit(manifest, principal, max_bytes=self.max_artifact_bytes)
        upload = upload_key(manifest.uri, root_url=self.root_url, owner=principal.owner)
        if existing := await self._own(manifest):
            return await self._settle(existing, manifest, upload)
        try:
            return Registered(await self._promote_and_commit(manifest, principal, upload), is_new=True)
        except (Rejected, Overtaken) as error:
            # Another delivery of the message may have committed and cleaned up meanwhile, or be in the same group.
            existing = await self._own(manifest, within=isinstance(error, Overtaken))
            if existing is not None:
                return await self._settle(existing, manifest, upload)
            if isinstance(error, Overtaken):
                raise IdTaken(artifact_id=manifest.id) from error
            raise

    async def _own(self, manifest: Manifest, *, within: bool = False) -> Manifest | None:
        """The manifest that the owner has registered under this id.

        That an id is another owner's is reported only to those who would have got it.
        """
        existing = await self.registry.find(manifest.id, within=within)
        return existing if existing is not None and existing.owner == manifest.owner else None

    async def _promote_and_commit(self, manifest: Manifest, principal: Principal, upload: str) -> Manifest:
        logical_id = await self.registry.logical_id(manifest, principal)
        await self.registry.require_inputs(manifest, principal)
        generation = await self.registry.pin(manifest.sha256)
        declared = Declared(manifest.sha256, manifest.size_bytes)
        labels = Labels(manifest.id, manifest.created_by)
        await self.blobs.promote(upload, object_key(manifest.sha256, generation), declared, labels)
        return await self.registry.commit(manifest, logical_id=logical_id, generation=generation, upload=upload)

    async def _settle(self, existing: Manifest, manifest: Manifest, upload: str) -> Registered:
        """Result for an id that exists: its artifact if the bytes are equal, else a conflict."""
        if existing.checksum != manifest.checksum:
            raise IdTaken(artifact_id=manifest.id, existing=existing.ref.model_dump())
        if await self.registry.has_expired(manifest.id):
            raise IdTaken(artifact_id=manifest.id)
        await self.registry.spend(upload, manifest.id)
        return Registered(existing, is_new=False)


_MANIFESTS, _BLOBS = ManifestRow.__table__, BlobRow.__table__
_MANIFEST = select(_MANIFESTS).where(_MANIFESTS.c.id == bindparam("artifact_id"))
_MEMBERS = select(TraceMemberRow.member).where(TraceMemberRow.trace_id == bindparam("trace_id"))
_SEEN_INPUTS = select(_MANIFESTS.c.id).where(
    ManifestRow.id.in_(bindparam("input_ids", expanding=True)), readable_as(bindparam("owner"), bindparam("trace"))
)
_IS_CONTENT = _BLOBS.c.sha256 == bindparam("content")
_BLOB = select(_BLOBS).where(_IS_CONTENT).with_for_update()
_ENLIVENING = update(BlobRow).where(_IS_CONTENT).values(state=LIVE, size_bytes=bindparam("size_bytes"))


@dataclass(frozen=True, slots=True)
class SqlRegistry:
    """Registry in storage's own database."""

    database: Database
    clock: Callable[[], datetime]

    async def find(self, artifact_id: str, *, within: bool = False) -> Manifest | None:
        look = self.database.run if within else self.database.read
        row = await look(lambda connection: connection.execute(_MANIFEST, {"artifact_id": artifact_id}).first())
        return None if row is None else as_manifest(row)

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

    async def require_inputs(self, manifest: Manifest, principal: Principal) -> None:
        if not (inputs := inputs_of(manifest)):
            return
        asked = {"input_ids": sorted(inputs), "owner": principal.owner, "trace": principal.trace_id}
        known_inputs = await self.database.read(lambda connection: {*connection.execute(_SEEN_INPUTS, asked).scalars()})
        if missing := sorted(inputs - known_inputs):
            raise NoSuchInput(missing=missing)

    async def pin(self, sha256: str) -> int:
        until = self.clock() + PINNED_FOR
        return await self.database.write(lambda connection: pin_content(connection, sha256, until))

    async def commit(self, manifest: Manifest, *, logical_id: str, generation: int, upload: str) -> Manifest:
        now = self.clock()

        def insert(connection: Connection) -> None:
            content = {"content": manifest.sha256}
            blob = connection.execute(_BLOB, content).first()
            if blob is None or blob.state not in (PINNED, LIVE) or blob.generation != generation:
                raise PinLost(delay=_RETRY_DELAY)
            is_new = insert_manifest(
                connection, manifest, logical_id=logical_id, generation=generation, committed_at=now
            )
            if not is_new:
                if connection.execute(_MANIFEST, {"artifact_id": manifest.id}).first() is None:
                    raise Forked(artifact_id=manifest.supersedes)
                raise Overtaken(manifest.id)
            connection.execute(_ENLIVENING, content | {"size_bytes": manifest.size_bytes})
            insert_inputs(connection, manifest.id, inputs_of(manifest))
            self._spend(connection, upload, manifest.id)

        await self.database.run(insert)
        uri = object_key(manifest.sha256, generation)
        return manifest.model_copy(update={"uri": uri, "status": "completed"})

    async def spend(self, upload: str, artifact_id: str) -> None:
        await self.database.run(lambda connection: self._spend(connection, upload, artifact_id))

    def _spend(self, connection: Connection, upload: str, artifact_id: str) -> None:
        spent = {"upload_key": upload, "artifact_id": artifact_id, "spent_at": self.clock()}
        connection.execute(inserting(connection, SpentUploadRow), spent)

    async def has_expired(self, artifact_id: str) -> bool:
        row = await self.database.read(
            lambda connection: connection.execute(_MANIFEST, {"artifact_id": artifact_id}).first()
        )
        return row is not None and row.expired_at is not None

    async def spent_uploads(self, limit: int) -> Sequence[SpentUpload]:
        query = select(SpentUploadRow.__table__).order_by(SpentUploadRow.spent_at).limit(limit)
        rows = await self.database.read(lambda connection: connection.execute(query).all())
        return [SpentUpload(row.upload_key, row.artifact_id) for row in rows]

    async def copy_of(self, artifact_id: str) -> ManifestCopy:
        def read(connection: Connection) -> ManifestCopy:
            row = connection.execute(_MANIFEST, {"artifact_id": artifact_id}).first()
            if row is None:
                raise LookupError(artifact_id)
            return ManifestCopy(
                manifest=as_manifest(row),
                logical_id=row.logical_id,
                generation=row.generation,
                committed_at=row.committed_at,
                expired_at=row.expired_at,
                members=tuple(sorted(connection.execute(_MEMBERS, {"trace_id": row.trace_id}).scalars())),
            )

        return await self.database.read(read)

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        removal = delete(SpentUploadRow).where(SpentUploadRow.upload_key.in_(uploads))
        await self.database.write(lambda connection: connection.execute(removal))

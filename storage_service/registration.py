"""Registration: a staged file becomes an artifact in three steps: promote, commit, clean up."""

import re
from dataclasses import dataclass
from typing import Protocol

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from mindbus.errors import Rejected
from mindbus.files.keys import object_key
from mindbus.principal import Principal
from storage_service.blobs import Blobs, Declared, Labels
from storage_service.errors import ArtifactTooLarge, IdTaken, NotTheProducer, SecretInParameters
from storage_service.maintenance.manifest_copies import SpentUploads
from storage_service.registry import Overtaken
from storage_service.uploads import upload_key

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


class Registry(SpentUploads, Protocol):
    """The database as registration sees it; it does not check who may read the result."""

    async def find(self, artifact_id: str) -> Manifest | None:
        """The committed manifest of this id, of any owner."""

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
            # Another delivery of the message may have committed and cleaned up meanwhile.
            existing = await self._own(manifest)
            if existing is not None:
                return await self._settle(existing, manifest, upload)
            if isinstance(error, Overtaken):
                raise IdTaken(artifact_id=manifest.id) from error
            raise

    async def _own(self, manifest: Manifest) -> Manifest | None:
        """The manifest that the owner has registered under this id.

        That an id is another owner's is reported only to those who would have got it.
        """
        existing = await self.registry.find(manifest.id)
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

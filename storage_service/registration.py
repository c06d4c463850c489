"""How a staged file becomes an artifact: promote, commit, clean."""

import re
from dataclasses import dataclass
from typing import Protocol

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from mindbus.errors import Rejected
from mindbus.principal import Principal
from storage_service.blobs import Blobs, Declared, Labels, object_key
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
    """Raises NotTheProducer, ArtifactTooLarge, SecretInParameters."""
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
    """What registration reads and writes, each method one effect; none of it asks who may see the result."""

    async def find(self, artifact_id: str) -> Manifest | None:
        """The committed manifest of this id, whoever's it is."""

    async def logical_id(self, manifest: Manifest, principal: Principal) -> str:
        """The id of version 1. Raises NoSuchArtifact, NotYoursToSupersede, NotTheNextVersion, Forked."""

    async def require_inputs(self, manifest: Manifest, principal: Principal) -> None:
        """Raises NoSuchInput for what does not exist, as for what its producer may not read."""

    async def pin(self, sha256: str) -> int:
        """Hold a content against collection while it is copied; the generation that its key must name."""

    async def commit(self, manifest: Manifest, *, logical_id: str, generation: int, upload: str) -> Manifest:
        """Make it an artifact, together with the message at hand. Raises PinLost, Overtaken, Forked."""

    async def spend(self, upload: str, artifact_id: str) -> None:
        """Note, together with the message at hand, that a staged file is needed no more."""

    async def has_expired(self, artifact_id: str) -> bool:
        """Whether nobody can read it any more."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The artifact as it stands; `is_new` where this very registration made it."""

    manifest: Manifest
    is_new: bool


@dataclass(frozen=True, slots=True)
class ArtifactRegistrar:
    """Carries a registration through effects that may each be the last one before a crash.

    The bytes are published before the manifest is committed and the staged file is removed after it, so that at every
    moment a manifest has its bytes; whatever else a crash leaves behind is repeated or collected. The commit is that
    of the message at hand: nothing has happened until its transaction ends.
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
        except (Rejected, Overtaken) as no:
            # A twin of this delivery may have committed, then cleaned, while this one was stalled: not our no to say.
            existing = await self._own(manifest)
            if existing is not None:
                return await self._settle(existing, manifest, upload)
            if isinstance(no, Overtaken):
                raise IdTaken(artifact_id=manifest.id) from no
            raise

    async def _own(self, manifest: Manifest) -> Manifest | None:
        """What its owner has registered under this id.

        That an id is another's, only they are told who would have got it: whoever merely asks learns nothing.
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
        """Same id: the same bytes are as good as done, others are a conflict."""
        if existing.checksum != manifest.checksum:
            raise IdTaken(artifact_id=manifest.id, existing=existing.ref.model_dump())
        if await self.registry.has_expired(manifest.id):
            raise IdTaken(artifact_id=manifest.id)
        await self.registry.spend(upload, manifest.id)
        return Registered(existing, is_new=False)

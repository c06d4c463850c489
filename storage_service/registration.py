"""Registration: a staged file becomes an artifact in three steps: promote, commit, clean up."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bus_schema.artifacts import Manifest
from bus_schema.identities import Principal, owner_of
from mindbus.errors import MindBusError, Rejected
from mindbus.spans import span
from mindbus.sql.errors import DatabaseAway
from storage_service.blobs import Blobs, Declared, Labels
from storage_service.errors import ArtifactTooLarge, IdTaken, NotTheProducer, QuotaSpent, SecretInParameters
from storage_service.quotas import ByteQuota
from storage_service.registry import Overtaken, PinLost, Prepared, Registry
from storage_service.uploads import upload_key

# Of those that one message registers: small objects are in memory as a whole.
_AT_ONCE = 16

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


# Errors of one artifact, which say nothing about others.
RegistrationError = MindBusError | OSError


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
    quota: ByteQuota | None = None

    async def register(self, manifest: Manifest, principal: Principal) -> Registered:
        """Raises Rejected; PinLost or OSError where trying again may help."""
        registered = (await self.register_all([manifest], principal))[0]
        if isinstance(registered, Exception):
            raise registered
        return registered

    async def register_all(
        self, manifests: Sequence[Manifest], principal: Principal
    ) -> list[Registered | RegistrationError]:
        """Register several within one transaction: each becomes an artifact or has its own error, as of `register`."""
        outcomes: dict[str, Registered | RegistrationError] = {}
        staged: list[Prepared] = []
        for manifest in manifests:
            try:
                admit(manifest, principal, max_bytes=self.max_artifact_bytes)
                upload = upload_key(manifest.uri, root_url=self.root_url, owner=principal.owner)
                staged.append(Prepared(manifest, upload))
            except Rejected as error:
                outcomes[manifest.id] = error
        existing = await self._own(staged)
        new = [each for each in staged if each.manifest.id not in existing]
        outcomes |= await self._beyond_quota(new)
        # The transaction, which keeps others from writing, begins when the bytes of all have been published.
        promoted = await self._promote([each for each in new if each.manifest.id not in outcomes], principal)
        # Another delivery of the message may have committed and cleaned up meanwhile.
        refused = {artifact_id for artifact_id, each in promoted.items() if isinstance(each, Rejected)}
        existing |= await self._own([each for each in staged if each.manifest.id in refused])
        outcomes |= {artifact_id: each for artifact_id, each in promoted.items() if not isinstance(each, Prepared)}
        outcomes |= await self._commit([each for each in promoted.values() if isinstance(each, Prepared)])
        for each in staged:
            if found := existing.get(each.manifest.id):
                outcomes[each.manifest.id] = await self._settle(found, each)
        return [outcomes[manifest.id] for manifest in manifests]

    async def _beyond_quota(self, new: Sequence[Prepared]) -> dict[str, RegistrationError]:
        """Errors of those that there is no room for."""
        refused: dict[str, RegistrationError] = {}
        if (quota := self.quota) is None:
            return refused
        for each in new:
            try:
                await quota.take(each.manifest.size_bytes)
            except QuotaSpent as error:
                refused[each.manifest.id] = error
        return refused

    async def _own(self, staged: Sequence[Prepared], *, within: bool = False) -> dict[str, Manifest]:
        """The manifests that the owner has registered under these ids.

        That an id is another owner's is reported only to those who would have got it.
        """
        if not staged:
            return {}
        owners = {each.manifest.id: each.manifest.owner for each in staged}
        found = await self.registry.find([*owners], within=within)
        return {artifact_id: each for artifact_id, each in found.items() if each.owner == owners[artifact_id]}

    async def _promote(
        self, staged: Sequence[Prepared], principal: Principal
    ) -> dict[str, Prepared | RegistrationError]:
        """Publish the bytes of each, pinned in their generation, or find why not."""
        outcomes: dict[str, Prepared | RegistrationError] = {}

        async def check(each: Prepared) -> Prepared:
            await self.registry.require_entry(each.manifest, principal)
            logical_id = await self.registry.logical_id(each.manifest, principal)
            await self.registry.require_inputs(each.manifest, principal)
            return replace(each, logical_id=logical_id)

        async def publish(each: Prepared) -> Prepared:
            manifest, content = each.manifest, contents[each.manifest.sha256]
            declared, labels = Declared(manifest.sha256, manifest.size_bytes), Labels(manifest.id, manifest.created_by)
            with span("blob promote", "CLIENT", mindbus__artifact=manifest.id, mindbus__size_bytes=manifest.size_bytes):
                packed = await self.blobs.promote(each.upload, content.key, declared, labels)
            return replace(each, generation=content.generation, packed=packed)

        outcomes |= await _each(staged, check)
        if checked := [each for each in outcomes.values() if isinstance(each, Prepared)]:
            contents = await self.registry.pin({each.manifest.sha256 for each in checked})
            outcomes |= await _each(checked, publish)
        return outcomes

    async def _commit(self, prepared: Sequence[Prepared]) -> dict[str, Registered | RegistrationError]:
        """Commit with the current transaction those that no other delivery has committed, or is about to."""
        outcomes: dict[str, Registered | RegistrationError] = {}
        for each, answer in zip(prepared, await self.registry.commit(prepared) if prepared else (), strict=True):
            if isinstance(answer, Manifest):
                outcomes[each.manifest.id] = Registered(answer, is_new=True)
                continue
            is_taken = isinstance(answer, Overtaken)
            existing = {} if isinstance(answer, PinLost) else await self._own([each], within=is_taken)
            if found := existing.get(each.manifest.id):
                outcomes[each.manifest.id] = await self._settle(found, each)
            else:
                outcomes[each.manifest.id] = (
                    IdTaken(artifact_id=each.manifest.id) if isinstance(answer, Overtaken) else answer
                )
        return outcomes

    async def _settle(self, existing: Manifest, staged: Prepared) -> Registered | IdTaken:
        """Result for an id that exists: its artifact if the bytes are equal, else a conflict."""
        manifest = staged.manifest
        if existing.checksum != manifest.checksum:
            return IdTaken(artifact_id=manifest.id, existing=existing.ref.model_dump())
        if await self.registry.has_expired(manifest.id):
            return IdTaken(artifact_id=manifest.id)
        await self.registry.spend(staged.upload, manifest.id)
        return Registered(existing, is_new=False)


async def _each(
    prepared: Sequence[Prepared], step: Callable[[Prepared], Awaitable[Prepared]]
) -> dict[str, Prepared | RegistrationError]:
    """The result of a step for each by artifact, or its error; some at once."""

    async def result_of(each: Prepared) -> Prepared | RegistrationError:
        try:
            return await step(each)
        except DatabaseAway:
            # The message is tried again.
            raise
        except (MindBusError, OSError) as error:
            return error

    results: list[Prepared | RegistrationError] = []
    for first in range(0, len(prepared), _AT_ONCE):
        if len(prepared) == 1:
            results.append(await result_of(prepared[0]))
        else:
            results += await asyncio.gather(*map(result_of, prepared[first : first + _AT_ONCE]))
    return {each.manifest.id: result for each, result in zip(prepared, results, strict=True)}

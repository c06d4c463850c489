"""Requests to the storage service, and its heartbeat."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from hashlib import sha256
from time import monotonic
from typing import Any, Protocol

from pydantic import ValidationError

from bus_schema.artifacts import ArtifactRef, Manifest
from bus_schema.envelope import explain
from bus_schema.fleet import Heartbeat
from bus_schema.messages import Query
from bus_schema.replies import Code
from bus_schema.storage import (
    GetArtifact,
    GetArtifacts,
    RegisterArtifact,
    RegisterArtifacts,
    Registration,
    RegistrationItem,
)
from bus_schema.uploads import FoundManifest, PresignedGet, PresignedPut, RequestUpload
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.sdk.errors import (
    ArtifactConflict,
    ArtifactNotFound,
    ArtifactRejected,
    StagedCopyLost,
    StorageAway,
    StorageFailed,
)
from mindbus.sdk.requests import ResultT, in_id_scope
from mindbus.tasks import end

# Storage hashes all that it publishes: an answer may take this long besides the copy.
_TIMEOUT_S = 6.0
_SLOWEST_COPY_BYTES_PER_S = 20e6
# Of each further one in a message: many of them may come at once.
_SLOWEST_S = 0.1
# Of asking for one registration: so often alike, then each time twice as long, up to so many times as long.
_ASKED_ALIKE, _MOST_TIMES = 3, 8
RegistrationFailure = StorageAway | StagedCopyLost | ArtifactRejected
_ERRORS: dict[Code, type[StorageAway] | type[StagedCopyLost]] = {
    Code.UNAVAILABLE: StorageAway,
    Code.EXPIRED: StorageAway,
    Code.INTERNAL: StorageFailed,
    Code.FILE_NOT_FOUND: StagedCopyLost,
    Code.CHECKSUM_MISMATCH: StagedCopyLost,
}


class StorageLink(Protocol):
    """The storage service, as far as artifacts are concerned."""

    async def register(self, manifest: Manifest) -> Registration:
        """Raises StorageAway, StagedCopyLost, ArtifactRejected."""

    async def register_all(self, manifests: Sequence[Manifest]) -> list[Registration | RegistrationFailure]:
        """The registration of each, up to a hundred of one trace, or why it was not registered. Raises StorageAway."""

    async def manifest(self, artifact_id: str, trace: str | None) -> Manifest:
        """Raises StorageAway, ArtifactNotFound, ArtifactRejected."""

    async def located(self, artifact_id: str, trace: str | None) -> FoundManifest:
        """As `manifest`, with the address of the bytes."""

    async def manifests_of(self, artifact_ids: Sequence[str], trace: str | None) -> tuple[Manifest, ...]:
        """Those that there are, as far as they may be read. Raises StorageAway, ArtifactRejected."""


class StorageClient:
    """StorageLink over the bus."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        # The reply goes to whoever asked first, so another process must not ask under the same message id.
        self._scope = secrets.token_hex(8)
        self._unanswered: Counter[str] = Counter()

    async def register(self, manifest: Manifest) -> Registration:
        """A repeated registration is the same message as long as the staged copy is the same."""
        command = RegisterArtifact(manifest=manifest)
        with _translate_errors(), self._patience(manifest) as timeout_s:
            return await in_id_scope(
                f"{self._scope}/{manifest.uri}",
                lambda: self._bus.request(command, timeout_s=timeout_s, trace=manifest.trace_id, step=manifest.step_id),
            )

    async def register_all(self, manifests: Sequence[Manifest]) -> list[Registration | RegistrationFailure]:
        """As `register`, in one message."""
        command, trace = RegisterArtifacts(manifests=tuple(manifests)), manifests[0].trace_id
        staged = sha256("\n".join(manifest.uri for manifest in manifests).encode()).hexdigest()
        with _translate_errors(), self._patience(*manifests) as timeout_s:
            report = await in_id_scope(
                f"{self._scope}/{staged}", lambda: self._bus.request(command, timeout_s=timeout_s, trace=trace)
            )
        return [_registration_of(item) for item in report.items]

    async def manifest(self, artifact_id: str, trace: str | None) -> Manifest:
        return await self._get(artifact_id, trace)

    async def located(self, artifact_id: str, trace: str | None) -> FoundManifest:
        return await self._get(artifact_id, trace, presigned=True)

    async def address_to_read(self, artifact_id: str, trace: str | None) -> PresignedGet | None:
        return (await self.located(artifact_id, trace)).presigned_url

    async def address_to_stage(self, manifest: Manifest) -> PresignedPut | None:
        query = RequestUpload(
            content_type=manifest.content_type,
            size_bytes=manifest.size_bytes,
            checksum=manifest.checksum,
            uri=manifest.uri,
        )
        return (await self._request(query)).presigned_put

    async def manifests_of(self, artifact_ids: Sequence[str], trace: str | None) -> tuple[Manifest, ...]:
        try:
            query = GetArtifacts(artifact_ids=tuple(artifact_ids))
        except ValidationError as error:
            raise ArtifactRejected(Code.INVALID, explain(error)) from error
        found = await self._request(query, trace)
        packed = found.packed or {}
        return tuple(FoundManifest(**dict(each), packed=packed.get(each.id)) for each in found.items)

    @contextmanager
    def _patience(self, *manifests: Manifest) -> Iterator[float]:
        """How long to wait for the answer, in seconds: longer for what has not been answered in time before.

        A storage that is slow, not away, would else do everything too late for everybody, again and again.
        """
        uris = [manifest.uri for manifest in manifests]
        doublings = max(0, max(map(self._unanswered.__getitem__, uris)) - _ASKED_ALIKE + 1)
        try:
            yield _timeout_s(*manifests) * min(2**doublings, _MOST_TIMES)
        except ReplyError as error:
            if isinstance(error, NoReply) or error.code is Code.EXPIRED:
                self._unanswered.update(uris)
            else:
                self._answered(uris)
            raise
        self._answered(uris)

    def _answered(self, uris: Iterable[str]) -> None:
        for uri in uris:
            del self._unanswered[uri]

    async def _get(self, artifact_id: str, trace: str | None, *, presigned: bool = False) -> FoundManifest:
        try:
            query = GetArtifact(artifact_id=artifact_id, presigned=presigned)
        except ValidationError as error:
            raise ArtifactRejected(Code.INVALID, explain(error)) from error
        try:
            return await self._request(query, trace)
        except ArtifactRejected as error:
            if error.code is Code.NOT_FOUND:
                raise ArtifactNotFound(f"{ArtifactNotFound.__doc__} ({artifact_id})") from error
            raise

    async def _request(self, query: Query[ResultT], trace: str | None = None) -> ResultT:
        with _translate_errors():
            return await in_id_scope(None, lambda: self._bus.request(query, timeout_s=_TIMEOUT_S, trace=trace))


async def storage_heartbeats(bus: Client) -> AsyncGenerator[None, None]:
    """The moments at which storage says that it is ready, without end."""
    async with bus.subscribe(Heartbeat) as heartbeats, aclosing(aiter(heartbeats)) as heard:
        async for heartbeat in heard:
            if heartbeat.service == RegisterArtifact.wire.service and heartbeat.ready:
                yield


class StorageHeartbeat:
    """Wakes those who wait for storage.

    It listens only while somebody waits: heartbeats of all workers have one address, so that a fleet at rest would be
    busy with agents that hear every worker.
    """

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self._listening: asyncio.Task[None] | None = None

    async def next(self) -> None:
        """Wait for the next heartbeat. Raises CancelledError once stopped."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen(), name="storage heartbeat")
        await asyncio.shield(self._listening)

    async def stop(self) -> None:
        if self._listening is not None:
            await end(self._listening)

    async def _listen(self) -> None:
        async with aclosing(storage_heartbeats(self._bus)) as heartbeats:
            await anext(heartbeats)


class StorageWatch:
    """Tells for how long storage was not heard; it is away when three of its heartbeats have not come.

    It counts as away, too, until what its absence has meant is `settle`d.
    """

    def __init__(self, bus: Client, heartbeat_s: float) -> None:
        self._bus = bus
        self._away_after_s = 3 * heartbeat_s
        self._heard_at: float | None = None
        self._unsettled_s = 0.0

    @property
    def is_away(self) -> bool:
        return self._unsettled_s > 0 or self._silent_s > self._away_after_s

    async def next_return(self) -> float:
        """Wait until storage has been away and is heard again; seconds in between."""
        if self._heard_at is None:
            self._heard_at = monotonic()
        async with aclosing(storage_heartbeats(self._bus)) as heartbeats:
            while not self._unsettled_s:
                await anext(heartbeats)
                if (silent_s := self._silent_s) > self._away_after_s:
                    self._unsettled_s = silent_s
                self._heard_at = monotonic()
        return self._unsettled_s

    def settle(self) -> None:
        """The absence has been taken into account."""
        self._unsettled_s = 0.0

    @property
    def _silent_s(self) -> float:
        return 0.0 if self._heard_at is None else monotonic() - self._heard_at


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (BusUnavailable, NoReply) as error:
        raise StorageAway(str(error)) from error
    except ReplyError as error:
        raise _translate(error.code, error.message, error.details) from error


def _timeout_s(*manifests: Manifest) -> float:
    size_bytes = sum(manifest.size_bytes for manifest in manifests)
    return _TIMEOUT_S + (len(manifests) - 1) * _SLOWEST_S + size_bytes / _SLOWEST_COPY_BYTES_PER_S


def _registration_of(item: RegistrationItem) -> Registration | RegistrationFailure:
    if item.status in ("refused", "failed"):
        return _translate(item.code or Code.INTERNAL, item.error or "", item.details)
    return Registration(
        artifact_id=item.artifact_id, version=item.version or 1, sha256=item.sha256 or "", outcome=item.status
    )


def _translate(code: Code, message: str, details: Mapping[str, Any]) -> RegistrationFailure:
    if code in _ERRORS:
        return _ERRORS[code](message)
    if code is Code.CONFLICT:
        return ArtifactConflict(message, _existing(details))
    return ArtifactRejected(code, message)


def _existing(details: Mapping[str, Any]) -> ArtifactRef | None:
    try:
        return ArtifactRef.model_validate(details.get("existing"))
    except ValidationError:
        return None

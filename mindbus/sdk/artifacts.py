"""Artifacts for agents as well as for users: put, get, open."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self, Unpack

from bus_schema.artifacts import ArtifactRef, Manifest
from bus_schema.ids import mint
from bus_schema.storage import GetVersions
from bus_schema.uploads import FoundManifest
from mindbus.bus.client import Client
from mindbus.bus.sender import require_fields
from mindbus.bus.worker import utc_now
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.files.store import has_direct_access, open_files
from mindbus.sdk.access import ArtifactAccess, DirectAccess, FolderAccess
from mindbus.sdk.buffer import Buffer, BufferLimits
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import ArtifactConflict, ArtifactRejected, BytesMissing, StorageAway
from mindbus.sdk.presigned_access import PresignedAccess
from mindbus.sdk.receiver import ArtifactReceiver
from mindbus.sdk.registration import BufferDrain, BufferRegistrar, StoragePolicy, batches_of, outcome_of
from mindbus.sdk.storage_link import StorageClient, StorageHeartbeat, StorageLink
from mindbus.sdk.transfers import (
    ArtifactReader,
    NewArtifact,
    Progress,
    Put,
    PutOptions,
    ReadOptions,
    ReadRange,
    Source,
    no_progress,
    read_whole,
    save_to,
)
from mindbus.settings import Settings
from mindbus.spans import span as blob_span
from mindbus.tasks import Supervised, end


def open_artifacts(
    bus: Client,
    settings: Settings,
    clock: Callable[[], datetime] = utc_now,
    storage: StorageLink | None = None,
) -> "Artifacts":
    """Artifacts of the participant of this bus, as the settings say; use with `async with`."""
    limits = BufferLimits(settings.buffer_max_bytes, settings.buffer_max_artifacts)
    return Artifacts(bus, open_access(bus, settings), settings.data_dir, clock, StoragePolicy(limits=limits), storage)


def open_access(bus: Client, settings: Settings) -> ArtifactAccess:
    """Access to the file store, directly or by presigned addresses."""
    if not has_direct_access(settings):
        return PresignedAccess(StorageClient(bus))
    files = open_files(settings)
    return DirectAccess(files) if files.local_root is None else FolderAccess(files, files.local_root)


class Artifacts:
    """One participant's artifacts; `async with` it, or call `start` first and `stop` last."""

    def __init__(
        self,
        bus: Client,
        access: ArtifactAccess,
        data_dir: Path,
        clock: Callable[[], datetime] = utc_now,
        policy: StoragePolicy | None = None,
        storage: StorageLink | None = None,
    ) -> None:
        self._bus, self._access, self._clock = bus, access, clock
        self._policy = policy or StoragePolicy()
        self._storage = storage or StorageClient(bus)
        self._buffer = Buffer(data_dir / "buffer", bus.owner, self._policy.limits)
        self._receiver = ArtifactReceiver(self._buffer, self._access, bus.identity, clock)
        self._registrar = BufferRegistrar(self._buffer, self._access, self._storage, clock)
        self._at_work: set[str] = set()
        self._drain = BufferDrain(self._buffer, self._registrar, self._policy, self._at_work)
        self._heartbeat = StorageHeartbeat(bus)
        self._room = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the buffer; register what waits in it, now and at every heartbeat of storage."""
        self._bus.begin_listening()
        await asyncio.to_thread(self._buffer.open)
        step = partial(self._drain.step, self._heartbeat.next, self._room.set)
        self._draining = Supervised(f"buffer of {self._bus.owner}", step, 0, lasts=True).start()

    async def stop(self) -> None:
        if self._draining is not None:
            await end(self._draining)
        await self._heartbeat.stop()
        for entry in self._buffer.entries():
            await self._access.shelter(entry, self._buffer.bytes_of(entry))
        await asyncio.to_thread(self._buffer.close)

    async def put(self, source: Source, progress: Progress = no_progress, **options: Unpack[PutOptions]) -> Put:
        """Make bytes an artifact: saved on this machine first, then registered; pending where storage is away.

        Raises BufferFull, ArtifactConflict, ArtifactRejected; OSError where the source or the disk fails.
        """
        require_fields(options, PutOptions)
        artifact_id = options["artifact_id"] = options.get("artifact_id") or mint("art")
        with blob_span("blob put", "CLIENT", mindbus__artifact=artifact_id), self._working_on(artifact_id) as is_alone:
            artifact: NewArtifact = {"source": source, **options}
            entry, is_staged = await self._receiver.receive(artifact, progress, stages=is_alone)
            if not is_alone:
                return Put(entry.manifest, "pending")
            return await self._register(entry, progress, is_staged=is_staged)

    async def put_all(self, artifacts: Sequence[NewArtifact]) -> list[Put | ArtifactRejected]:
        """Make many sources artifacts, each as `put` does, a hundred to a message; their outcomes in order.

        One that is rejected harms no other: its error is its outcome. Raises BufferFull, OSError as `put` does;
        those before it are registered all the same.
        """
        for each in artifacts:
            require_fields(each, NewArtifact)
        named: list[NewArtifact] = [
            {**each, "artifact_id": each.get("artifact_id") or mint("art")} for each in artifacts
        ]
        outcomes: dict[str, Put | ArtifactRejected] = {}
        with ExitStack() as at_work:
            alone = {id_: at_work.enter_context(self._working_on(id_)) for id_ in dict.fromkeys(map(_id_of, named))}
            received = await self._receiver.receive_all(named)
            outcomes |= {id_: error for id_, error in received.items() if isinstance(error, ArtifactConflict)}
            entries = [entry for entry in received.values() if isinstance(entry, BufferEntry)]
            outcomes |= {each.artifact_id: Put(each.manifest, "pending") for each in entries}
            outcomes |= await self._register_all([each for each in entries if alone[each.artifact_id]])
        return [outcomes[_id_of(each)] for each in named]

    async def find(self, artifact_id: str, *, trace: str) -> Put | None:
        """The artifact, if it has been put before, by this instance or by one that died; else None.

        Only this participant's own artifacts are searched. Raises StorageAway, ArtifactRejected.
        """
        buffered = await self.find_buffered(artifact_id)
        return buffered or self.as_put((await self.manifests([artifact_id], trace=trace)).get(artifact_id))

    async def find_buffered(self, artifact_id: str) -> Put | None:
        """The artifact, if it waits in the buffer of this instance or of one that died; it is registered now.

        Raises ArtifactRejected.
        """
        if self._buffer.get(artifact_id) is None:
            await asyncio.to_thread(self._buffer.adopt)
        if (entry := self._buffer.get(artifact_id)) is None:
            return None
        with self._working_on(artifact_id) as is_alone:
            return await self._register(entry) if is_alone else Put(entry.manifest, "pending")

    def waiting(self, artifact_id: str) -> Put | None:
        """The artifact, if it is in the buffer of this instance, to be registered when that can be done."""
        entry = self._buffer.get(artifact_id)
        return None if entry is None else Put(entry.manifest, "pending")

    async def delete_failed(self, artifact_id: str) -> None:
        """Delete the copy of an artifact that storage has rejected: it cannot be retried. Raises OSError."""
        await asyncio.to_thread(self._buffer.delete_failed, artifact_id)

    def as_put(self, manifest: Manifest | None) -> Put | None:
        """An artifact that storage has, if it is this participant's own."""
        return Put(manifest, "already_exists") if manifest and manifest.owner == self._bus.owner else None

    async def manifests(self, artifact_ids: Sequence[str], *, trace: str | None = None) -> dict[str, Manifest]:
        """Manifests by id, as far as storage lets this participant read them. Raises StorageAway, ArtifactRejected."""
        found = await self._policy.retry(lambda: self._storage.manifests_of(artifact_ids, trace))
        return {manifest.id: manifest for manifest in found}

    async def manifest(self, artifact_id: str, *, trace: str | None = None) -> Manifest:
        """The manifest, if storage lets this participant read it. Raises ArtifactNotFound, StorageAway."""
        return await self._policy.retry(lambda: self._storage.manifest(artifact_id, trace))

    async def newest(self, artifact: ArtifactRef, *, trace: str) -> ArtifactRef:
        """The latest version of an artifact; the artifact itself where storage does not say."""
        try:
            versions = await self._bus.request(GetVersions(artifact_id=artifact.artifact_id), trace=trace)
        except (BusUnavailable, ReplyError):
            return artifact
        return versions.items[-1].ref if versions.items else artifact

    @asynccontextmanager
    async def open(self, artifact_id: str, **options: Unpack[ReadOptions]) -> AsyncIterator[ArtifactReader]:
        """Read in pieces; the digest is checked, of a range the length alone.

        Raises as `manifest` does; ArtifactUnreadable, NoSuchRange.
        """
        require_fields(options, ReadOptions)
        trace = options.get("trace")
        needs_place = self._access.needs_place
        manifest = await (self._located(artifact_id, trace) if needs_place else self.manifest(artifact_id, trace=trace))
        async with self.open_found(manifest, **options) as reader:
            yield reader

    @asynccontextmanager
    async def open_found(self, manifest: Manifest, **options: Unpack[ReadOptions]) -> AsyncIterator[ArtifactReader]:
        """As `open`, of an artifact whose manifest is there already. Raises ArtifactUnreadable, NoSuchRange."""
        trace = options.get("trace")
        span = ReadRange.of(manifest, options.get("start", 0), options.get("length"))
        # A whole artifact is read to its end: bytes beyond its size mean that it is not the artifact.
        length = None if span.is_whole else span.length
        try:
            pieces = await self._access.open(manifest, trace, span.start, length)
        except BytesMissing:
            if not self._access.needs_place or (isinstance(manifest, FoundManifest) and manifest.packed):
                raise
            # Only storage knows whether the bytes are in a pack, and in which.
            located = await self._located(manifest.id, trace)
            pieces = await self._access.open(located, trace, span.start, length)
        reader = ArtifactReader(manifest, pieces, span, options.get("progress", no_progress))
        try:
            yield reader
        finally:
            await reader.close()

    async def get(self, artifact_id: str, *, max_bytes: int | None = None, **options: Unpack[ReadOptions]) -> bytes:
        """All the bytes. Raises as `open` does; ArtifactTooLong."""
        with blob_span("blob get", "CLIENT", mindbus__artifact=artifact_id):
            async with self.open(artifact_id, **options) as reader:
                return await read_whole(reader, max_bytes)

    async def save(self, artifact_id: str, path: Path, **options: Unpack[ReadOptions]) -> Manifest:
        """Write the bytes to a file atomically. Raises as `open` does."""
        async with self.open(artifact_id, **options) as reader:
            await save_to(reader, path)
            return reader.manifest

    async def wait_for_room(self) -> None:
        """Wait until the buffer takes another artifact: better than to make one that cannot be kept."""
        while not self._buffer.has_room:
            self._room.clear()
            await self._room.wait()

    async def wait_for_storage(self) -> None:
        await self._heartbeat.next()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    async def _register(self, entry: BufferEntry, progress: Progress = no_progress, *, is_staged: bool = False) -> Put:
        """The first attempts; the rest is up to the drain."""
        if not self._buffer.is_ready(entry):
            return Put(entry.manifest, "pending")
        # A later attempt finds the bytes back in the buffer.
        staged = iter([is_staged])
        try:
            registration = await self._policy.retry(
                lambda: self._registrar.register(entry.artifact_id, progress, is_staged=next(staged, False))
            )
        except StorageAway:
            return Put(entry.manifest, "pending")
        finally:
            self._room.set()
        return Put(entry.manifest, registration.outcome)

    async def _register_all(self, entries: Sequence[BufferEntry]) -> dict[str, Put | ArtifactRejected]:
        """As `_register`, in batches; first those that others need."""
        outcomes: dict[str, Put | ArtifactRejected] = {}
        while ready := [each for each in entries if self._buffer.is_ready(each)]:
            entries = [each for each in entries if each not in ready]
            for batch in batches_of(ready):
                with suppress(StorageAway):
                    answers = await self._policy.retry(partial(self._registrar.register_all, batch))
                    outcomes |= {each.artifact_id: outcome_of(each, answers[each.artifact_id]) for each in batch}
                self._room.set()
        return outcomes

    async def _located(self, artifact_id: str, trace: str | None) -> FoundManifest:
        return await self._policy.retry(lambda: self._storage.located(artifact_id, trace))

    @contextmanager
    def _working_on(self, artifact_id: str) -> Iterator[bool]:
        """Keep the drain off an artifact; False where the drain is at work on it already."""
        is_alone = artifact_id not in self._at_work
        self._at_work.add(artifact_id)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._at_work.discard(artifact_id)
                if self._buffer.get(artifact_id) is not None:
                    self._drain.wake()


def _id_of(artifact: NewArtifact) -> str:
    return artifact.get("artifact_id") or ""

"""Artifacts for agents as well as for users: put, get, open."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Self, Unpack

from bus_schema.artifacts import ArtifactRef, Manifest
from bus_schema.ids import mint
from mindbus.bus.client import Client
from mindbus.bus.worker import utc_now
from mindbus.files.keys import new_staging_key
from mindbus.files.store import has_direct_access, open_files
from mindbus.logs import logger
from mindbus.sdk.access import ArtifactAccess, DirectAccess, FolderAccess
from mindbus.sdk.buffer import Buffer, BufferLimits
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import ArtifactConflict, StorageAway
from mindbus.sdk.presigned_access import PresignedAccess
from mindbus.sdk.registration import BufferDrain, BufferRegistrar, StoragePolicy
from mindbus.sdk.storage_link import StorageClient, StorageHeartbeat, StorageLink
from mindbus.sdk.transfers import (
    ArtifactReader,
    Progress,
    PutOptions,
    ReadOptions,
    ReadRange,
    Source,
    chunks_of,
    guess_content_type,
    no_progress,
    read_whole,
    save_to,
    size_of,
    with_progress,
)
from mindbus.settings import Settings
from mindbus.tasks import end

# Small bytes are received in one go: handing over to a thread takes longer than hashing them.
_RECEIVED_AT_ONCE_BYTES = 64 * 1024


@dataclass(frozen=True)
class Put:
    """Outcome of `Artifacts.put`: storage has the artifact, or it is pending, safe in the local buffer."""

    manifest: Manifest
    outcome: Literal["registered", "already_exists", "pending"]

    @property
    def ref(self) -> ArtifactRef:
        """The pointer to put into messages; valid from now on, pending or not."""
        return self.manifest.ref

    @property
    def is_pending(self) -> bool:
        """Whether storage has yet to confirm it; it then publishes `artifact.registered`."""
        return self.outcome == "pending"


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
        self._registrar = BufferRegistrar(self._buffer, self._access, self._storage, clock)
        self._at_work: set[str] = set()
        self._drain = BufferDrain(self._buffer, self._registrar, self._policy, self._at_work)
        self._finishing = asyncio.Lock()
        self._heartbeat = StorageHeartbeat(bus)
        self._room = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the buffer; register what waits in it, now and at every heartbeat of storage."""
        await asyncio.to_thread(self._buffer.open)
        self._heartbeat.start()
        self._draining = asyncio.create_task(self._drain_forever(), name=f"buffer of {self._bus.owner}")

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
        artifact_id = options["artifact_id"] = options.get("artifact_id") or mint("art")
        with self._working_on(artifact_id) as is_alone:
            entry = await self._receive(source, options, progress)
            return await self._register(entry, progress) if is_alone else Put(entry.manifest, "pending")

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
        entry = self._buffer.get(artifact_id)
        if entry is not None:
            with self._working_on(artifact_id) as is_alone:
                return await self._register(entry) if is_alone else Put(entry.manifest, "pending")
        return None

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

    @asynccontextmanager
    async def open(self, artifact_id: str, **options: Unpack[ReadOptions]) -> AsyncIterator[ArtifactReader]:
        """Read in pieces; the digest is checked, of a range the length alone.

        Raises as `manifest` does; ArtifactUnreadable, NoSuchRange.
        """
        manifest = await self.manifest(artifact_id, trace=options.get("trace"))
        async with self.open_found(manifest, **options) as reader:
            yield reader

    @asynccontextmanager
    async def open_found(self, manifest: Manifest, **options: Unpack[ReadOptions]) -> AsyncIterator[ArtifactReader]:
        """As `open`, of an artifact whose manifest is there already. Raises ArtifactUnreadable, NoSuchRange."""
        trace = options.get("trace")
        span = ReadRange.of(manifest, options.get("start", 0), options.get("length"))
        # A whole artifact is read to its end: bytes beyond its size mean that it is not the artifact.
        pieces = await self._access.open(manifest, trace, span.start, None if span.is_whole else span.length)
        reader = ArtifactReader(manifest, pieces, span, options.get("progress", no_progress))
        try:
            yield reader
        finally:
            await reader.close()

    async def get(self, artifact_id: str, *, max_bytes: int | None = None, **options: Unpack[ReadOptions]) -> bytes:
        """All the bytes. Raises as `open` does; ArtifactTooLong."""
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

    async def _receive(self, source: Source, options: PutOptions, progress: Progress) -> BufferEntry:
        def describe(sha256: str, size_bytes: int) -> BufferEntry:
            return self._entry(options, content_type, sha256, size_bytes)

        content_type = options.get("content_type") or guess_content_type(source)
        if isinstance(source, bytes) and len(source) <= _RECEIVED_AT_ONCE_BYTES:
            async with self._finishing:
                entry, sha256 = await asyncio.to_thread(self._buffer.receive, source, describe)
            progress("receive", len(source), len(source))
        else:
            incoming = await asyncio.to_thread(self._buffer.begin)
            try:
                async for chunk in with_progress(chunks_of(source), "receive", progress, size_of(source)):
                    await asyncio.to_thread(incoming.write, chunk)
                async with self._finishing:
                    entry = await asyncio.to_thread(incoming.finish, describe)
            except BaseException:
                await asyncio.to_thread(incoming.abandon)
                raise
            sha256 = incoming.sha256
        if entry.manifest.sha256 != sha256:
            raise ArtifactConflict(f"{entry.artifact_id} waits in the buffer with other bytes", entry.manifest.ref)
        return entry

    def _entry(self, options: PutOptions, content_type: str, sha256: str, size_bytes: int) -> BufferEntry:
        now, before = self._clock(), options.get("supersedes")
        key = new_staging_key(self._bus.owner, now)
        manifest = Manifest(
            id=options.get("artifact_id") or mint("art"),
            version=before.version + 1 if before else 1,
            supersedes=before.artifact_id if before else None,
            trace_id=options["trace"],
            step_id=options.get("step"),
            created_by=self._bus.identity,
            created_at=now,
            artifact_type=options["artifact_type"],
            content_type=content_type,
            uri=self._access.address(key),
            size_bytes=size_bytes,
            checksum=f"sha256:{sha256}",
            retention=options.get("retention", "infinite"),
            owner=self._bus.owner,
            visibility=options.get("visibility", "trace"),
            context=options.get("context"),
        )
        return BufferEntry(manifest=manifest, upload_key=key, buffered_at=now)

    async def _register(self, entry: BufferEntry, progress: Progress = no_progress) -> Put:
        """The first attempts; the rest is up to the drain."""
        if any(map(self._buffer.get, entry.needs)):
            return Put(entry.manifest, "pending")
        try:
            registration = await self._policy.retry(lambda: self._registrar.register(entry.artifact_id, progress))
        except StorageAway:
            return Put(entry.manifest, "pending")
        finally:
            self._room.set()
        return Put(entry.manifest, registration.outcome)

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

    async def _drain_forever(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._buffer.adopt)
                await self._drain.round(self._room.set)
            except OSError as error:
                logger().error("buffer cannot be drained", owner=self._bus.owner, reason=str(error))
            await self._heartbeat.next()
            await self._policy.sleep(self._policy.chance() * self._policy.spread_s)

"""The durable local buffer: an artifact is on this machine's disk before storage is asked to register it."""

import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mindbus.bus.telemetry import Metric, series
from mindbus.files.disk import BackgroundSha256, Disk, WriteBehindFile, private
from mindbus.logs import logger
from mindbus.sdk.buffer_folder import FAILED, REASON, BufferEntry, BufferFolder, bytes_path, entry_path
from mindbus.sdk.errors import BufferClosed, BufferFull

BUFFERED_ARTIFACTS = Metric("Gauge", "mindbus_buffered_artifacts", "Artifacts in the local buffer", ("owner",))
BUFFERED_BYTES = Metric("Gauge", "mindbus_buffered_bytes", "Bytes in the local buffer", ("owner",))


@dataclass(frozen=True)
class BufferLimits:
    """Limits of what may wait for storage on one machine, for one participant."""

    max_bytes: int = 4 * 1024**3
    max_artifacts: int = 1000


@dataclass(frozen=True)
class _Held:
    entry: BufferEntry
    folder: BufferFolder


class Buffer:
    """All artifacts of one owner that wait here, in this instance's folder and in those of instances that died.

    Every call blocks; call from a thread where an event loop runs.
    """

    def __init__(self, root: Path, owner: str, limits: BufferLimits, disk: Disk | None = None) -> None:
        self.root, self._owner, self._limits, self._disk = root / owner, owner, limits, disk or Disk()
        self._lock, self._changing = threading.Lock(), threading.Lock()
        self._own: BufferFolder | None = None
        self._adopted: list[BufferFolder] = []
        self._held: dict[str, _Held] = {}
        self._bytes = 0
        self._receiving = 0

    def open(self) -> None:
        """Create a folder of this instance's own; adopt those of dead instances."""
        while self._own is None:
            path = self.root / secrets.token_hex(8)
            self._disk.make_folder(path)
            # Another instance may take a folder just created for an abandoned one.
            self._own = BufferFolder.claim(path, self._disk)
        self.adopt()

    def adopt(self) -> None:
        """Take over the folders of instances that have died since; a closed buffer takes none."""
        # A second caller must find what the first has adopted, not a locked folder.
        with self._changing:
            if self._own is None:
                return
            for path in sorted(self.root.iterdir()):
                if path.name != FAILED and path.is_dir() and not self._is_mine(path):
                    self._adopt(path)
            self._release_empty()

    def begin(self) -> "BufferWriter":
        """A writer for another artifact. Raises BufferFull."""
        with self._lock:
            if len(self._held) + self._receiving >= self._limits.max_artifacts:
                raise BufferFull(f"{BufferFull.__doc__} ({len(self._held)} artifacts wait for {self._owner})")
            self._receiving += 1
        own = self._folder()
        return BufferWriter(self, own, own.path / f"{secrets.token_hex(8)}.part", self._disk)

    def receive(self, content: bytes, describe: Callable[[str, int], BufferEntry]) -> tuple[BufferEntry, str]:
        """Make bytes an entry, as a writer does; returns it with the digest of the bytes. Raises BufferFull."""
        incoming = self.begin()
        try:
            incoming.write(content)
            return incoming.finish(describe), incoming.sha256
        except BaseException:
            incoming.abandon()
            raise

    @property
    def has_room(self) -> bool:
        """Whether another artifact would be accepted, unless it is large."""
        with self._lock:
            waiting = len(self._held) + self._receiving
            return waiting < self._limits.max_artifacts and self._bytes < self._limits.max_bytes

    def get(self, artifact_id: str) -> BufferEntry | None:
        with self._lock:
            item = self._held.get(artifact_id)
            return item.entry if item else None

    def entry(self, artifact_id: str) -> BufferEntry:
        """The entry of an artifact. Raises KeyError."""
        return self._at(artifact_id).entry

    def entries(self) -> list[BufferEntry]:
        with self._lock:
            return [item.entry for item in self._held.values()]

    def is_ready(self, entry: BufferEntry) -> bool:
        """Whether nothing that must be registered before it waits here."""
        return not any(map(self.get, entry.needs))

    def bytes_of(self, entry: BufferEntry) -> Path:
        return bytes_path(self._at(entry.artifact_id).folder.path, entry.artifact_id)

    def save(self, entry: BufferEntry) -> None:
        """Write an entry anew, after its staging key has changed."""
        folder = self._at(entry.artifact_id).folder
        folder.save(entry)
        with self._lock:
            self._held[entry.artifact_id] = _Held(entry, folder)

    def drop(self, *artifact_ids: str) -> None:
        """Remove entries that storage has registered."""
        with self._changing:
            for artifact_id in artifact_ids:
                self._at(artifact_id).folder.drop(artifact_id)
                self._forget(artifact_id)

    def set_aside(self, artifact_id: str, reason: str) -> None:
        self._at(artifact_id).folder.set_aside(artifact_id, reason)
        self._forget(artifact_id)

    def delete_failed(self, artifact_id: str) -> None:
        """Delete an artifact that was set aside, if it was."""
        failed = self.root / FAILED
        # The reason last: by it a half-deleted artifact is still listed.
        for path in (entry_path(failed, artifact_id), bytes_path(failed, artifact_id)):
            self._disk.remove(path)
        self._disk.remove(failed / f"{artifact_id}{REASON}")

    def close(self) -> None:
        """Release the folders; the next buffer to open adopts what waits in them."""
        # A thread that still adopts would keep their locks as long as the process lives, one that drops lose the rest.
        with self._changing:
            for entry in self.entries():
                self._forget(entry.artifact_id)
            for folder in (*self._adopted, *filter(None, (self._own,))):
                folder.close()
            self._adopted, self._own = [], None

    def reserve(self, size_bytes: int) -> None:
        """Count received bytes. Raises BufferFull."""
        with self._lock:
            if self._bytes + size_bytes > self._limits.max_bytes:
                raise BufferFull(f"{BufferFull.__doc__} ({self._bytes} bytes wait for {self._owner})")
            self._bytes += size_bytes

    def release(self, size_bytes: int, entry: BufferEntry | None) -> None:
        """A writer is done: its bytes count as those of its entry, if there is one."""
        with self._lock:
            self._receiving -= 1
            self._bytes -= size_bytes
            if entry is not None:
                self._hold(entry, self._folder())

    def _is_mine(self, path: Path) -> bool:
        return any(folder.path == path for folder in (self._own, *self._adopted) if folder)

    def _adopt(self, path: Path) -> None:
        folder = BufferFolder.claim(path, self._disk)
        if folder is None:
            return
        entries = folder.load()
        logger().info("buffer folder adopted", owner=self._owner, folder=path.name, artifacts=len(entries))
        with self._lock:
            self._adopted.append(folder)
            for entry in entries:
                self._hold(entry, folder)

    def _hold(self, entry: BufferEntry, folder: BufferFolder) -> None:
        if entry.artifact_id in self._held:
            logger().warning("buffered twice, one is kept", artifact_id=entry.artifact_id)
            return
        self._held[entry.artifact_id] = _Held(entry, folder)
        self._bytes += entry.manifest.size_bytes
        series(BUFFERED_ARTIFACTS, self._owner).inc()
        series(BUFFERED_BYTES, self._owner).inc(entry.manifest.size_bytes)

    def _forget(self, artifact_id: str) -> None:
        with self._lock:
            removed = self._held.pop(artifact_id)
            self._bytes -= removed.entry.manifest.size_bytes
        series(BUFFERED_ARTIFACTS, self._owner).dec()
        series(BUFFERED_BYTES, self._owner).dec(removed.entry.manifest.size_bytes)

    def _release_empty(self) -> None:
        for folder in [folder for folder in self._adopted if folder.is_empty()]:
            self._adopted.remove(folder)
            folder.close()

    def _at(self, artifact_id: str) -> _Held:
        with self._lock:
            return self._held[artifact_id]

    def _folder(self) -> BufferFolder:
        if self._own is None:
            raise BufferClosed(BufferClosed.__doc__)
        return self._own


class BufferWriter:
    """Bytes being received into the buffer, hashed as they are written."""

    def __init__(self, buffer: Buffer, folder: BufferFolder, part: Path, disk: Disk) -> None:
        self._buffer, self._folder, self._part, self._disk = buffer, folder, part, disk
        self._file = os.fdopen(private(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb")
        self._writeback = WriteBehindFile(self._file)
        self._digest = BackgroundSha256()
        self._is_over = False
        self.size_bytes = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Raises BufferFull, OSError."""
        self._buffer.reserve(len(chunk))
        self.size_bytes += len(chunk)
        self._digest.update(chunk)
        self._writeback.write(chunk)

    def finish(self, describe: Callable[[str, int], BufferEntry]) -> BufferEntry:
        """Make the bytes an entry, which `describe` makes of digest and size; from here on it survives a crash.

        Where an artifact of this id waits already, that entry is kept and returned.
        """
        entry = describe(self.sha256, self.size_bytes)
        earlier = self._buffer.get(entry.artifact_id)
        if earlier is not None:
            self.abandon()
            return earlier
        self._disk.sync(self._file)
        self._file.close()
        self._folder.add(self._part, entry)
        self._is_over = True
        self._digest.close()
        self._buffer.release(self.size_bytes, entry)
        return entry

    def abandon(self) -> None:
        """Discard the bytes; idempotent."""
        if self._is_over:
            return
        self._is_over = True
        self._digest.close()
        self._file.close()
        self._disk.remove(self._part)
        self._buffer.release(self.size_bytes, None)

"""Access to the bytes of artifacts for processes that reach the file store themselves."""

import asyncio
import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Protocol

from bus_schema.artifacts import Manifest
from bus_schema.uploads import FoundManifest
from mindbus.files.keys import object_key
from mindbus.files.packs import read_pack
from mindbus.files.store import FileStore
from mindbus.logs import logger
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import BytesMissing, InvalidArtifactKey, StorageAway
from mindbus.sdk.transfers import CHUNK_BYTES, ByteStream, Progress, no_progress

# An object store replaces objects as a whole; asking what is there takes longer than sending so little again.
_SENT_AT_ONCE_BYTES = 1024 * 1024
# Handing over more pieces to threads takes longer than reading them.
_READ_AT_ONCE_BYTES = 64 * 1024
_GENERATION = re.compile(r"[0-9]{1,18}")


class ArtifactAccess(Protocol):
    """Staging and reading, directly or by presigned addresses."""

    @property
    def needs_place(self) -> bool:
        """Whether `open` has to be told in which pack the bytes are, where they are in one."""

    def address(self, key: str) -> str:
        """The `uri` that a manifest shows for what is staged under the key."""

    async def stage(self, entry: BufferEntry, source: Path, progress: Progress = no_progress) -> None:
        """Bring the bytes to where storage looks for them, unless they are there. Raises StorageAway."""

    def stage_at_once(self, entry: BufferEntry, source: Path) -> bool:
        """Stage from the thread of the caller; False where that takes time, or fails, so that `stage` has to do it."""

    async def shelter(self, entry: BufferEntry, source: Path) -> None:
        """Storage is away: bring the bytes to where nobody collects them."""

    async def unstage(self, entry: BufferEntry) -> None:
        """Remove what will not be registered; what cannot be removed now, storage collects later."""

    async def open(
        self, manifest: Manifest, trace: str | None, start: int = 0, length: int | None = None
    ) -> ByteStream:
        """The bytes from `start`, all or `length` of them. Raises InvalidArtifactKey, BytesMissing, StorageAway."""


class DirectAccess:
    """ArtifactAccess through the file store itself."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    @property
    def needs_place(self) -> bool:
        return self._files.local_root is not None

    def address(self, key: str) -> str:
        return self._files.uri(key)

    async def stage(self, entry: BufferEntry, source: Path, progress: Progress = no_progress) -> None:
        try:
            await asyncio.to_thread(self._stage, entry, source, progress)
        except OSError as error:
            raise StorageAway(f"file store: {error}") from error

    def stage_at_once(self, entry: BufferEntry, source: Path) -> bool:
        """False: the bytes are sent."""
        return False

    async def shelter(self, entry: BufferEntry, source: Path) -> None:
        """Nothing to do: the buffer keeps the bytes."""

    async def unstage(self, entry: BufferEntry) -> None:
        try:
            await asyncio.to_thread(self._files.delete, entry.upload_key)
        except OSError as error:
            logger().warning("staged file stays", upload=entry.upload_key, reason=str(error))

    async def open(
        self, manifest: Manifest, trace: str | None, start: int = 0, length: int | None = None
    ) -> ByteStream:
        key = _permanent_key(manifest, self._files.url)
        expected = manifest.size_bytes - start if length is None else length
        try:
            if (content := await asyncio.to_thread(self._packed, manifest)) is not None:
                return BufferedByteStream(content[start:] if length is None else content[start : start + length])
            return await asyncio.to_thread(self._open, key, start, length, expected)
        except FileNotFoundError as error:
            raise BytesMissing(f"{BytesMissing.__doc__} ({manifest.id}, {key})") from error
        except OSError as error:
            raise StorageAway(f"file store: {error}") from error

    def _stage(self, entry: BufferEntry, source: Path, progress: Progress) -> None:
        key, size_bytes = entry.upload_key, entry.manifest.size_bytes
        # Without a source, storage may have it already; else storage is the one to reject it.
        if not self._is_staged(key, size_bytes) and source.exists():
            self._files.upload(key, source, lambda done: progress("send", done, size_bytes))

    def _is_staged(self, key: str, size_bytes: int) -> bool:
        """Storage may be reading the copy of an earlier attempt: in a folder, it must not change meanwhile."""
        if self._files.local_root is None and size_bytes <= _SENT_AT_ONCE_BYTES:
            return False
        try:
            return self._files.size_bytes(key) == size_bytes
        except FileNotFoundError:
            return False

    def _packed(self, manifest: Manifest) -> bytes | None:
        """The bytes of an artifact that is in a pack, as far as the manifest says so."""
        root = self._files.local_root
        if root is None or not isinstance(manifest, FoundManifest) or manifest.packed is None:
            return None
        with suppress(FileNotFoundError):
            return read_pack(root, manifest.packed, manifest.sha256, int(manifest.uri.rpartition("/")[2]))
        return None

    def _open(self, key: str, start: int, length: int | None, expected: int) -> ByteStream:
        file = self._files.open_read(key)
        if start:
            file.seek(start)
        if expected > _READ_AT_ONCE_BYTES:
            return FileByteStream(file, length)
        with file:
            # Bytes beyond the size mean that it is not the artifact.
            return BufferedByteStream(file.read(expected + 1 if length is None else expected))


class FolderAccess(DirectAccess):
    """Stages by moving, which takes no time; by copying where the buffer is on another disk.

    Neither move is synced to the disk: a power cut may leave the bytes at either place, where they are looked for.
    """

    def __init__(self, files: FileStore, root: Path) -> None:
        super().__init__(files)
        self._root = root

    def stage_at_once(self, entry: BufferEntry, source: Path) -> bool:
        try:
            self._stage(entry, source, no_progress)
        except OSError:
            return False
        return True

    async def shelter(self, entry: BufferEntry, source: Path) -> None:
        """Move the bytes back to the buffer: storage collects what is staged for long."""
        try:
            await asyncio.to_thread(self._move_back, self._root / entry.upload_key, source)
        except OSError as error:
            logger().warning("staged file stays", upload=entry.upload_key, reason=str(error))

    def _move_back(self, staged: Path, source: Path) -> None:
        if staged.exists() and not source.exists():
            _move(staged, source)

    def _stage(self, entry: BufferEntry, source: Path, progress: Progress) -> None:
        staged = self._root / entry.upload_key
        places = chain((source, staged), self._orphans(entry.upload_key))
        place = next((place for place in places if place.exists()), None)
        if place is None:
            # Storage may have it; else storage is the one to reject it.
            return
        # It may have waited longer than storage leaves alone what is staged.
        os.utime(place)
        if place == source and (mode := self._root.stat().st_mode & 0o666) != 0o600:
            place.chmod(mode)
        if place != staged and not _move(place, staged):
            super()._stage(entry, place, progress)

    def _orphans(self, key: str) -> Iterator[Path]:
        """Paths among the orphans, to which storage moves uploads that were not registered within a day."""
        for place in (self._root / "orphans", self._root.parent / "orphans"):
            yield from place.glob(f"*/{key}")


class BufferedByteStream:
    """ByteStream of bytes that have been read already."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def read(self) -> bytes:
        content, self._content = self._content, b""
        return content

    async def close(self) -> None:
        """Holds nothing."""


class FileByteStream:
    """ByteStream of an open file, read in a thread."""

    def __init__(self, file: IO[bytes], length: int | None) -> None:
        self._file, self._left = file, length

    async def read(self) -> bytes:
        size = CHUNK_BYTES if self._left is None else min(CHUNK_BYTES, self._left)
        if not size:
            return b""
        try:
            piece = await asyncio.to_thread(self._file.read, size)
        except OSError as error:
            raise StorageAway(f"file store: {error}") from error
        if self._left is not None:
            self._left -= len(piece)
        return piece

    async def close(self) -> None:
        await asyncio.to_thread(self._file.close)


def _permanent_key(manifest: Manifest, store_url: str) -> str:
    """The key that a manifest names, rebuilt rather than opened as given. Raises InvalidArtifactKey."""
    key = manifest.uri.removeprefix(f"{store_url}/")
    generation = key.rpartition("/")[2]
    if not _GENERATION.fullmatch(generation) or key != object_key(manifest.sha256, generation):
        raise InvalidArtifactKey(f"{InvalidArtifactKey.__doc__} ({manifest.id}: {manifest.uri})")
    return key


def _move(source: Path, target: Path) -> bool:
    """Rename; False where source and target are on different disks."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True

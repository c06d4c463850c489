"""How a participant gets at the bytes in the file store."""

import asyncio
from pathlib import Path
from typing import IO, Protocol

from bus_schema.artifacts import Manifest
from mindbus.files.store import FileStore
from mindbus.logs import logger
from mindbus.sdk.entry import Entry
from mindbus.sdk.failures import BytesMissing, StorageAway
from mindbus.sdk.permanent_key import permanent_key
from mindbus.sdk.progress import Progress, nobody
from mindbus.sdk.sources import CHUNK_BYTES

# An object store replaces an object as a whole; to ask what is there takes longer than to send so little again.
_SENT_AT_ONCE_BYTES = 1024 * 1024


class Pieces(Protocol):
    """The bytes of an artifact, or of a range of it, as the store gives them: nothing is checked yet."""

    async def read(self) -> bytes:
        """The next piece; empty at the end. Raises StorageAway."""
        ...

    async def close(self) -> None:
        """Let go of them."""
        ...


class Access(Protocol):
    """Staging and reading: by itself, or with the addresses that storage hands out."""

    def address(self, key: str) -> str:
        """The `uri` that a manifest shows for what is staged under the key."""
        ...

    async def stage(self, entry: Entry, source: Path, progress: Progress = nobody) -> None:
        """Bring the bytes to where storage looks for them, unless they are there. Raises StorageAway."""
        ...

    async def shelter(self, entry: Entry, source: Path) -> None:
        """Storage is away: have the bytes where nobody collects them, however long that takes."""
        ...

    async def unstage(self, entry: Entry) -> None:
        """Remove what will not be registered; what cannot be removed now, storage collects later."""
        ...

    async def open(self, manifest: Manifest, trace: str | None, start: int = 0, length: int | None = None) -> Pieces:
        """The bytes from `start`, all or `length` of them. Raises NotAPermanentKey, BytesMissing, StorageAway."""
        ...


class DirectAccess:
    """Access with the file store's own means."""

    def __init__(self, files: FileStore) -> None:
        self._files = files

    def address(self, key: str) -> str:
        """As in Access."""
        return self._files.uri(key)

    async def stage(self, entry: Entry, source: Path, progress: Progress = nobody) -> None:
        """As in Access."""
        try:
            await asyncio.to_thread(self._stage, entry, source, progress)
        except OSError as trouble:
            raise StorageAway(f"file store: {trouble}") from trouble

    async def shelter(self, entry: Entry, source: Path) -> None:
        """As in Access; the buffer has not let go of them."""

    async def unstage(self, entry: Entry) -> None:
        """As in Access."""
        try:
            await asyncio.to_thread(self._files.delete, entry.upload_key)
        except OSError as trouble:
            logger().warning("staged file stays", upload=entry.upload_key, reason=str(trouble))

    async def open(self, manifest: Manifest, trace: str | None, start: int = 0, length: int | None = None) -> Pieces:
        """As in Access."""
        key = permanent_key(manifest, self._files.url)
        try:
            return FilePieces(await asyncio.to_thread(self._open, key, start), length)
        except FileNotFoundError as missing:
            raise BytesMissing(f"{BytesMissing.__doc__} ({manifest.id}, {key})") from missing
        except OSError as trouble:
            raise StorageAway(f"file store: {trouble}") from trouble

    def _stage(self, entry: Entry, source: Path, progress: Progress) -> None:
        key, size_bytes = entry.upload_key, entry.manifest.size_bytes
        # Without a source, storage may have it already; else storage is the one to say no.
        if not self._is_there(key, size_bytes) and source.exists():
            self._files.upload(key, source, lambda done: progress("send", done, size_bytes))

    def _is_there(self, key: str, size_bytes: int) -> bool:
        """Storage may be reading a copy from an earlier try: in a folder, it must not change under its eyes."""
        if self._files.local_root is None and size_bytes <= _SENT_AT_ONCE_BYTES:
            return False
        try:
            return self._files.size_bytes(key) == size_bytes
        except FileNotFoundError:
            return False

    def _open(self, key: str, start: int) -> IO[bytes]:
        file = self._files.open_read(key)
        if start:
            file.seek(start)
        return file


class FilePieces:
    """Pieces out of an open file."""

    def __init__(self, file: IO[bytes], length: int | None) -> None:
        self._file, self._left = file, length

    async def read(self) -> bytes:
        """As in Pieces."""
        wanted = CHUNK_BYTES if self._left is None else min(CHUNK_BYTES, self._left)
        if not wanted:
            return b""
        try:
            piece = await asyncio.to_thread(self._file.read, wanted)
        except OSError as trouble:
            raise StorageAway(f"file store: {trouble}") from trouble
        if self._left is not None:
            self._left -= len(piece)
        return piece

    async def close(self) -> None:
        """As in Pieces."""
        await asyncio.to_thread(self._file.close)

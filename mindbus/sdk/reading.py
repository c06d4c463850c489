"""An artifact's bytes, checked while they are read."""

import asyncio
import hashlib
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

from bus_schema.artifacts import Manifest
from mindbus.files import FileStore
from mindbus.sdk.disk import Disk
from mindbus.sdk.failures import ArtifactTooLong, BytesDiffer, BytesMissing, NotAPermanentKey, StorageAway
from mindbus.sdk.sources import CHUNK_BYTES

_KEY = re.compile(r"objects/sha256/([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{64})/[0-9]{1,18}")


def permanent_key(manifest: Manifest, files: FileStore) -> str:
    """The key that a manifest names, recognised rather than opened as given. Raises NotAPermanentKey."""
    key = manifest.uri.removeprefix(f"{files.url}/")
    found = _KEY.fullmatch(key)
    digest = manifest.sha256
    if found is None or found.groups() != (digest[:2], digest[2:4], digest):
        raise NotAPermanentKey(f"{NotAPermanentKey.__doc__} ({manifest.id}: {manifest.uri})")
    return key


class ArtifactReader:
    """Reads in pieces; the last of them comes only if all of them were the artifact's."""

    def __init__(self, manifest: Manifest, file: IO[bytes]) -> None:
        self.manifest = manifest
        self._file = file
        self._digest = hashlib.sha256()
        self._left = manifest.size_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises BytesDiffer, StorageAway."""
        while chunk := await self.read():
            yield chunk

    async def read(self) -> bytes:
        """The next piece; empty at the end. Raises BytesDiffer, StorageAway."""
        return await asyncio.to_thread(self.read_blocking)

    def read_blocking(self) -> bytes:
        """The same for callers in a thread."""
        try:
            chunk = self._file.read(CHUNK_BYTES)
        except OSError as trouble:
            raise StorageAway(f"file store: {trouble}") from trouble
        self._digest.update(chunk)
        self._left -= len(chunk)
        is_last = self._left == 0 or not chunk
        if self._left < 0 or (is_last and not self._is_whole()):
            raise BytesDiffer(f"{BytesDiffer.__doc__} ({self.manifest.id})")
        return chunk

    def _is_whole(self) -> bool:
        return self._left == 0 and self._digest.hexdigest() == self.manifest.sha256

    async def close(self) -> None:
        """Let go of the file."""
        await asyncio.to_thread(self._file.close)


async def open_reader(manifest: Manifest, files: FileStore) -> ArtifactReader:
    """Raises NotAPermanentKey, BytesMissing, StorageAway."""
    key = permanent_key(manifest, files)
    try:
        return ArtifactReader(manifest, await asyncio.to_thread(files.open_read, key))
    except FileNotFoundError as missing:
        raise BytesMissing(f"{BytesMissing.__doc__} ({manifest.id}, {key})") from missing
    except OSError as trouble:
        raise StorageAway(f"file store: {trouble}") from trouble


async def read_whole(reader: ArtifactReader, max_bytes: int | None) -> bytes:
    """All of it. Raises ArtifactTooLong."""
    size_bytes = reader.manifest.size_bytes
    if max_bytes is not None and size_bytes > max_bytes:
        raise ArtifactTooLong(f"{ArtifactTooLong.__doc__} ({reader.manifest.id}: {size_bytes} bytes)")
    return b"".join([chunk async for chunk in reader])


async def save_to(reader: ArtifactReader, path: Path) -> None:
    """A file that is whole or not there. Raises BytesDiffer, StorageAway; OSError where it cannot be written."""
    await asyncio.to_thread(_save, reader, path, Disk())


def _save(reader: ArtifactReader, path: Path, disk: Disk) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("wb") as file:
            while chunk := reader.read_blocking():
                file.write(chunk)
            disk.sync(file)
        disk.publish(part, path)
    finally:
        part.unlink(missing_ok=True)

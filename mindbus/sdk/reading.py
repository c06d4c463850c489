"""An artifact's bytes, checked while they are read."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from bus_schema.artifacts import Manifest
from mindbus.sdk.access import Pieces
from mindbus.sdk.disk import Disk
from mindbus.sdk.failures import ArtifactTooLong, BytesDiffer


class ArtifactReader:
    """Reads in pieces; the last of them comes only if all of them were the artifact's."""

    def __init__(self, manifest: Manifest, pieces: Pieces) -> None:
        self.manifest = manifest
        self._pieces = pieces
        self._digest = hashlib.sha256()
        self._left = manifest.size_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises BytesDiffer, StorageAway."""
        while piece := await self.read():
            yield piece

    async def read(self) -> bytes:
        """The next piece; empty at the end. Raises BytesDiffer, StorageAway."""
        piece = await self._pieces.read()
        await asyncio.to_thread(self._digest.update, piece)
        self._left -= len(piece)
        is_last = self._left == 0 or not piece
        if self._left < 0 or (is_last and not self._is_whole()):
            raise BytesDiffer(f"{BytesDiffer.__doc__} ({self.manifest.id})")
        return piece

    def _is_whole(self) -> bool:
        return self._left == 0 and self._digest.hexdigest() == self.manifest.sha256

    async def close(self) -> None:
        """Let go of the bytes."""
        await self._pieces.close()


async def read_whole(reader: ArtifactReader, max_bytes: int | None) -> bytes:
    """All of it. Raises ArtifactTooLong."""
    size_bytes = reader.manifest.size_bytes
    if max_bytes is not None and size_bytes > max_bytes:
        raise ArtifactTooLong(f"{ArtifactTooLong.__doc__} ({reader.manifest.id}: {size_bytes} bytes)")
    return b"".join([piece async for piece in reader])


async def save_to(reader: ArtifactReader, path: Path) -> None:
    """A file that is whole or not there. Raises BytesDiffer, StorageAway; OSError where it cannot be written."""
    disk, part = Disk(), path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with await asyncio.to_thread(part.open, "wb") as file:
            async for piece in reader:
                await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(disk.sync, file)
        await asyncio.to_thread(disk.publish, part, path)
    finally:
        await asyncio.to_thread(part.unlink, missing_ok=True)

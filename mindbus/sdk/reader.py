"""Reading of an artifact, with its digest checked on the way."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bus_schema.artifacts import Manifest
from mindbus.files.bulk_io import BackgroundSha256, WriteBehindFile
from mindbus.sdk.access import ByteStream
from mindbus.sdk.disk import Disk
from mindbus.sdk.errors import ArtifactCorrupt, ArtifactTooLong, NoSuchRange
from mindbus.sdk.sources import Progress, no_progress


@dataclass(frozen=True, slots=True)
class ReadRange:
    """The bytes of an artifact that are to be read."""

    start: int
    length: int
    is_whole: bool

    @classmethod
    def of(cls, manifest: Manifest, start: int, length: int | None) -> "ReadRange":
        """As in a slice: a negative start counts from the end, bytes beyond it are left out.

        Raises NoSuchRange.
        """
        size_bytes = manifest.size_bytes
        begin = max(0, size_bytes + start) if start < 0 else start
        if begin > size_bytes or (length is not None and length < 0):
            raise NoSuchRange(f"{NoSuchRange.__doc__} ({manifest.id}: {size_bytes} bytes)")
        left = size_bytes - begin
        size = left if length is None else min(length, left)
        return cls(begin, size, size == size_bytes)


class ArtifactReader:
    """Reads in pieces; the last piece is returned only if the digest of all of them is right.

    Of a range only the length can be checked.
    """

    def __init__(
        self, manifest: Manifest, pieces: ByteStream, byte_range: ReadRange, progress: Progress = no_progress
    ) -> None:
        self.manifest, self.byte_range = manifest, byte_range
        self._pieces, self._progress = pieces, progress
        self._digest = BackgroundSha256() if self.byte_range.is_whole else None
        self._left = self.byte_range.length

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ArtifactCorrupt, StorageAway."""
        while piece := await self.read():
            yield piece

    async def read(self) -> bytes:
        """The next piece; empty at the end. Raises ArtifactCorrupt, StorageAway."""
        piece = await self._pieces.read()
        self._left -= len(piece)
        if not await asyncio.to_thread(self._fits, piece):
            raise ArtifactCorrupt(f"{ArtifactCorrupt.__doc__} ({self.manifest.id})")
        self._progress("read", self.byte_range.length - self._left, self.byte_range.length)
        return piece

    async def close(self) -> None:
        """Release the connection or file."""
        if self._digest is not None:
            await asyncio.to_thread(self._digest.close)
        await self._pieces.close()

    def _fits(self, piece: bytes) -> bool:
        if self._digest is not None:
            self._digest.update(piece)
        if self._left > 0:
            return bool(piece)
        return self._left == 0 and (self._digest is None or self._digest.hexdigest() == self.manifest.sha256)


async def read_whole(reader: ArtifactReader, max_bytes: int | None) -> bytes:
    """All the bytes. Raises ArtifactTooLong."""
    size_bytes = reader.byte_range.length
    if max_bytes is not None and size_bytes > max_bytes:
        raise ArtifactTooLong(f"{ArtifactTooLong.__doc__} ({reader.manifest.id}: {size_bytes} bytes)")
    return b"".join([piece async for piece in reader])


async def save_to(reader: ArtifactReader, path: Path) -> None:
    """Write the bytes to a file atomically. Raises ArtifactCorrupt, StorageAway; OSError where it cannot be written."""
    disk, part = Disk(), path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with await asyncio.to_thread(part.open, "wb") as file:
            target = WriteBehindFile(file)
            async for piece in reader:
                await asyncio.to_thread(target.write, piece)
            await asyncio.to_thread(disk.sync, file)
        await asyncio.to_thread(disk.publish, part, path)
    finally:
        await asyncio.to_thread(part.unlink, missing_ok=True)

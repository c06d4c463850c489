"""An artifact's bytes, checked while they are read."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bus_schema.artifacts import Manifest
from mindbus.files.bulk_io import BackgroundSha256, WriteBehindFile
from mindbus.sdk.access import Pieces
from mindbus.sdk.disk import Disk
from mindbus.sdk.failures import ArtifactTooLong, BytesDiffer, NoSuchRange
from mindbus.sdk.progress import Progress, nobody


@dataclass(frozen=True, slots=True)
class Span:
    """Which bytes of an artifact are wanted."""

    start: int
    length: int
    is_whole: bool

    @classmethod
    def of(cls, manifest: Manifest, start: int, length: int | None) -> "Span":
        """As a slice names them: a negative start counts from the end, what lies beyond it is left out.

        Raises NoSuchRange.
        """
        size_bytes = manifest.size_bytes
        begin = max(0, size_bytes + start) if start < 0 else start
        if begin > size_bytes or (length is not None and length < 0):
            raise NoSuchRange(f"{NoSuchRange.__doc__} ({manifest.id}: {size_bytes} bytes)")
        left = size_bytes - begin
        wanted = left if length is None else min(length, left)
        return cls(begin, wanted, wanted == size_bytes)


class ArtifactReader:
    """Reads in pieces; the last of them comes only if all of them were the artifact's.

    A range cannot be checked against the digest of the whole: of it, only the length is.
    """

    def __init__(self, manifest: Manifest, pieces: Pieces, span: Span, progress: Progress = nobody) -> None:
        self.manifest, self.span = manifest, span
        self._pieces, self._progress = pieces, progress
        self._digest = BackgroundSha256() if self.span.is_whole else None
        self._left = self.span.length

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises BytesDiffer, StorageAway."""
        while piece := await self.read():
            yield piece

    async def read(self) -> bytes:
        """The next piece; empty at the end. Raises BytesDiffer, StorageAway."""
        piece = await self._pieces.read()
        self._left -= len(piece)
        if not await asyncio.to_thread(self._fits, piece):
            raise BytesDiffer(f"{BytesDiffer.__doc__} ({self.manifest.id})")
        self._progress("read", self.span.length - self._left, self.span.length)
        return piece

    async def close(self) -> None:
        """Let go of the bytes."""
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
    """All of it. Raises ArtifactTooLong."""
    size_bytes = reader.span.length
    if max_bytes is not None and size_bytes > max_bytes:
        raise ArtifactTooLong(f"{ArtifactTooLong.__doc__} ({reader.manifest.id}: {size_bytes} bytes)")
    return b"".join([piece async for piece in reader])


async def save_to(reader: ArtifactReader, path: Path) -> None:
    """A file that is whole or not there. Raises BytesDiffer, StorageAway; OSError where it cannot be written."""
    disk, part = Disk(), path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with await asyncio.to_thread(part.open, "wb") as file:
            eager = WriteBehindFile(file)
            async for piece in reader:
                await asyncio.to_thread(eager.write, piece)
            await asyncio.to_thread(disk.sync, file)
        await asyncio.to_thread(disk.publish, part, path)
    finally:
        await asyncio.to_thread(part.unlink, missing_ok=True)

"""Transfers of artifact bytes: sources of new ones, progress, reading with a check of the digest."""

import asyncio
import mimetypes
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol, Required, TypedDict

from bus_schema.artifacts import AIContext, ArtifactRef, Manifest, Visibility
from mindbus.files.disk import BackgroundSha256, Disk, WriteBehindFile
from mindbus.sdk.errors import ArtifactCorrupt, ArtifactTooLong, NoSuchRange, NoTextMode

CHUNK_BYTES = 1024 * 1024
_HASHED_IN_PLACE_BYTES = 64 * 1024

Source = Path | bytes | IO[bytes] | AsyncIterable[bytes]

# Types that not every system knows.
_TYPES = {
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".jsonl": "application/jsonl",
}

# In this order. Bytes that are only moved are not sent; to register them, storage reads them all.
Phase = Literal["receive", "send", "register", "read"]
# Called with the phase, its bytes so far and in total (None: unknown), from any thread.
Progress = Callable[[Phase, int, int | None], None]


def no_progress(_phase: Phase, _done_bytes: int, _total_bytes: int | None) -> None:
    """Ignore the progress."""


async def with_progress(
    pieces: AsyncIterator[bytes], phase: Phase, progress: Progress, total_bytes: int | None
) -> AsyncIterator[bytes]:
    """The pieces; each is reported when the next one is requested."""
    done_bytes = 0
    async for piece in pieces:
        yield piece
        done_bytes += len(piece)
        progress(phase, done_bytes, total_bytes)


async def chunks_of(source: Source) -> AsyncIterator[bytes]:
    """The bytes in pieces, read in a thread. Raises OSError, NoTextMode."""
    if isinstance(source, bytes):
        yield source
    elif isinstance(source, Path):
        with await asyncio.to_thread(source.open, "rb") as reader:
            while chunk := await asyncio.to_thread(reader.read, CHUNK_BYTES):
                yield chunk
    elif isinstance(source, AsyncIterable):
        async for chunk in _gather(source):
            yield chunk
    elif not hasattr(source, "read"):
        raise NoTextMode(f"{NoTextMode.__doc__} (this is of type {type(source).__name__})")
    else:
        while chunk := _binary(await asyncio.to_thread(source.read, CHUNK_BYTES)):
            yield chunk


def size_of(source: Source) -> int | None:
    """Number of bytes, None where it is not known beforehand. Raises OSError."""
    if isinstance(source, Path):
        return source.stat().st_size
    return len(source) if isinstance(source, bytes) else None


def guess_content_type(source: Source) -> str:
    """MIME type by the file's name, where there is one."""
    name = source if isinstance(source, Path) else getattr(source, "name", "")
    path = Path(name) if isinstance(name, str | Path) else Path()
    return _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"


async def _gather(source: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Larger pieces: each is written in a thread, for which those of a socket are too small."""
    pieces: list[bytes] = []
    size_bytes = 0
    async for piece in source:
        pieces.append(_binary(piece))
        size_bytes += len(piece)
        if size_bytes >= CHUNK_BYTES:
            yield b"".join(pieces)
            pieces, size_bytes = [], 0
    if pieces:
        yield b"".join(pieces)


def _binary(chunk: bytes) -> bytes:
    if not isinstance(chunk, bytes):
        raise NoTextMode(NoTextMode.__doc__)
    return chunk


class PutOptions(TypedDict, total=False):
    """Fields of a new artifact's manifest; without a content type it is guessed from the file's name.

    An `artifact_id` that is derived from its cause makes a repeated `put` recognisable. `supersedes` is the version
    before this one.
    """

    artifact_type: Required[str]
    trace: Required[str]
    step: str | None
    content_type: str | None
    visibility: Visibility
    retention: str
    supersedes: ArtifactRef | None
    context: AIContext | None
    artifact_id: str | None


class NewArtifact(PutOptions):
    """A source with the fields of its manifest."""

    source: Required[Source]


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


class ReadOptions(TypedDict, total=False):
    """Range, trace and progress of a read.

    A range begins at `start`, counted from the end where it is negative, and has `length` bytes, fewer where the
    artifact ends before. `progress` is called with the bytes read so far.
    """

    trace: str | None
    start: int
    length: int | None
    progress: Progress


class ByteStream(Protocol):
    """The unchecked bytes of an artifact, or of a range of it, as the store gives them."""

    async def read(self) -> bytes:
        """The next piece; empty at the end. Raises StorageAway."""

    async def close(self) -> None:
        """Release the connection or file."""


@dataclass(frozen=True, slots=True)
class ReadRange:
    """The bytes of an artifact that are to be read."""

    start: int
    length: int
    is_whole: bool

    @classmethod
    def of(cls, manifest: Manifest, start: int, length: int | None) -> "ReadRange":
        """The range as in a slice: a negative start counts from the end, bytes beyond it are left out.

        Raises NoSuchRange.
        """
        size_bytes = manifest.size_bytes
        begin = max(0, size_bytes + start) if start < 0 else start
        if begin > size_bytes or (length is not None and length < 0):
            raise NoSuchRange(f"{NoSuchRange.__doc__} ({manifest.id}: {size_bytes} bytes)")
        remaining = size_bytes - begin
        size = remaining if length is None else min(length, remaining)
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
        # Small pieces are hashed in less time than a thread takes to begin.
        fits = self._fits(piece) if len(piece) < _HASHED_IN_PLACE_BYTES else await asyncio.to_thread(self._fits, piece)
        if not fits:
            raise ArtifactCorrupt(f"{ArtifactCorrupt.__doc__} ({self.manifest.id})")
        self._progress("read", self.byte_range.length - self._left, self.byte_range.length)
        return piece

    async def close(self) -> None:
        if self._digest is not None and self.byte_range.length < _HASHED_IN_PLACE_BYTES:
            self._digest.close()
        elif self._digest is not None:
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

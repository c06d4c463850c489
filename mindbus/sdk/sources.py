"""Sources of the bytes of a new artifact, and progress of a transfer."""

import asyncio
import mimetypes
from collections.abc import AsyncIterable, AsyncIterator, Callable
from pathlib import Path
from typing import IO, Literal

from mindbus.sdk.errors import NoTextMode

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


CHUNK_BYTES = 1024 * 1024

Source = Path | bytes | IO[bytes] | AsyncIterable[bytes]

# Types that not every system knows.
_TYPES = {
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".jsonl": "application/jsonl",
}


async def chunks_of(source: Source) -> AsyncIterator[bytes]:
    """The bytes in pieces, read in a thread. Raises OSError, NoTextMode."""
    if isinstance(source, bytes):
        yield source
    elif isinstance(source, Path):
        with await asyncio.to_thread(source.open, "rb") as reader:
            while chunk := await asyncio.to_thread(reader.read, CHUNK_BYTES):
                yield chunk
    elif isinstance(source, AsyncIterable):
        async for chunk in _gathered(source):
            yield chunk
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


async def _gathered(source: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
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

"""Where the bytes of a new artifact come from."""

import asyncio
import mimetypes
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import IO

from mindbus.sdk.failures import NoTextMode

CHUNK_BYTES = 1024 * 1024

Source = Path | bytes | IO[bytes] | AsyncIterable[bytes]

# Not known to every machine's own table.
_TYPES = {
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".jsonl": "application/jsonl",
}


async def chunks_of(source: Source) -> AsyncIterator[bytes]:
    """The bytes in pieces, read off the loop. Raises OSError, NoTextMode."""
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
    """How many bytes will come, where that is known beforehand. Raises OSError."""
    if isinstance(source, Path):
        return source.stat().st_size
    return len(source) if isinstance(source, bytes) else None


def guess_content_type(source: Source) -> str:
    """By the file's name, where it has one."""
    name = source if isinstance(source, Path) else getattr(source, "name", "")
    path = Path(name) if isinstance(name, str | Path) else Path()
    return _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"


async def _gathered(source: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Each piece goes to the disk in a thread: from a socket, they would be too small for that."""
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

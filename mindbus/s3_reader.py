"""An object as a file to read."""

import io
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from mindbus.s3 import Bucket

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK_BYTES = 1024 * 1024


class ObjectReader(io.RawIOBase):
    """One request from where reading begins to the end, another after a seek; always of the version it began with."""

    def __init__(self, bucket: Bucket, key: str, etag: str, size_bytes: int) -> None:
        self._bucket, self._key, self._etag, self._size_bytes = bucket, key, etag, size_bytes
        self._position = 0
        self._body = AsyncExitStack()
        self._read: Callable[[int], Coroutine[Any, Any, bytes]] | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte comes from."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Nothing is requested before it is read."""
        begins = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size_bytes}[whence]
        position = max(0, begins + offset)
        if position != self._position:
            self._let_go()
            self._position = position
        return position

    def readinto(self, target: "WriteableBuffer") -> int:
        """Raises OSError."""
        view = memoryview(target).cast("B")
        if self._position >= self._size_bytes or not view:
            return 0
        piece = self._bucket.wait(self._next(len(view)))
        view[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def close(self) -> None:
        """Let go of the connection."""
        if not self.closed:
            self._let_go()
        super().close()

    async def _next(self, size_bytes: int) -> bytes:
        if self._read is None:
            body = self._bucket.body(self._key, IfMatch=self._etag, Range=f"bytes={self._position}-")
            self._read = await self._body.enter_async_context(body)
        return await self._read(size_bytes)

    def _let_go(self) -> None:
        if self._read is not None:
            self._read = None
            self._bucket.wait(self._body.aclose())

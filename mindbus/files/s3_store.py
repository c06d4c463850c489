"""The file store in a bucket."""

import io
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mindbus.files.keys import checked_key
from mindbus.files.s3_bucket import Bucket, SeekableReader, checksum_of
from mindbus.files.s3_upload import S3Upload, UploadParts

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK_BYTES = 1024 * 1024


class S3Files:
    """FileStore over a bucket; bytes go both ways in pieces, whatever the size."""

    def __init__(self, bucket: Bucket, url: str, parts: UploadParts) -> None:
        self.bucket = bucket
        self.fs: Any = bucket.fs
        self.root = f"{bucket.name}/{bucket.path('')}".rstrip("/")
        self.url = url.rstrip("/")
        self._parts = parts

    @property
    def local_root(self) -> Path | None:
        return None

    def uri(self, key: str) -> str:
        return f"{self.url}/{checked_key(key)}"

    def open_read(self, key: str) -> IO[bytes]:
        """A reader of the version that the object has now."""
        found = self.bucket.wait(self.bucket.require_object(checked_key(key)))
        return io.BufferedReader(ObjectReader(self.bucket, key, found["ETag"], found["ContentLength"]), CHUNK_BYTES)

    def put(self, key: str, content: bytes) -> None:
        path = self.bucket.path(checked_key(key))
        self.bucket.wait(self.bucket.call("put_object", Key=path, Body=content, ChecksumSHA256=checksum_of(content)))

    def upload(self, key: str, source: Path, progress: Callable[[int], None] | None = None) -> None:
        self.bucket.wait(S3Upload(self.bucket, checked_key(key), source, self._parts, progress).run())

    def exists(self, key: str) -> bool:
        return self.bucket.wait(self.bucket.head(checked_key(key))) is not None

    def size_bytes(self, key: str) -> int:
        return int(self.bucket.wait(self.bucket.require_object(checked_key(key)))["ContentLength"])

    def delete(self, key: str) -> None:
        self.bucket.wait(self.bucket.call("delete_object", Key=self.bucket.path(checked_key(key))))


class ObjectReader(SeekableReader):
    """One request from the position to the end, another after a seek; always of the same version of the object."""

    def __init__(self, bucket: Bucket, key: str, etag: str, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._bucket, self._key, self._etag = bucket, key, etag
        self._body = AsyncExitStack()
        self._read: Callable[[int], Coroutine[Any, Any, bytes]] | None = None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position; the next read sends the request."""
        before = self.position
        if super().seek(offset, whence) != before:
            self._close_body()
        return self.position

    def readinto(self, target: "WriteableBuffer") -> int:
        """Raises OSError."""
        view = memoryview(target).cast("B")
        if self.position >= self.size_bytes or not view:
            return 0
        piece = self._bucket.wait(self._next(len(view)))
        view[: len(piece)] = piece
        self.position += len(piece)
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._close_body()
        super().close()

    async def _next(self, size_bytes: int) -> bytes:
        if self._read is None:
            body = self._bucket.body(self._key, IfMatch=self._etag, Range=f"bytes={self.position}-")
            self._read = await self._body.enter_async_context(body)
        return await self._read(size_bytes)

    def _close_body(self) -> None:
        if self._read is not None:
            self._read = None
            self._bucket.wait(self._body.aclose())

"""The file store in a bucket."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mindbus.keys import checked
from mindbus.s3 import Bucket, checksum_of
from mindbus.s3_reader import CHUNK_BYTES, ObjectReader
from mindbus.s3_upload import Pieces, Uploading


class S3Files:
    """As FileStore; bytes go both ways in pieces, whatever the size."""

    def __init__(self, bucket: Bucket, url: str, pieces: Pieces) -> None:
        self.bucket = bucket
        self.fs: Any = bucket.fs
        self.root = f"{bucket.name}/{bucket.path('')}".rstrip("/")
        self.url = url.rstrip("/")
        self._pieces = pieces

    @property
    def local_root(self) -> Path | None:
        """As in FileStore."""
        return None

    def uri(self, key: str) -> str:
        """As in FileStore."""
        return f"{self.url}/{checked(key)}"

    def open_read(self, key: str) -> IO[bytes]:
        """As in FileStore; all that is read is of one version of the object."""
        found = self.bucket.wait(self.bucket.require_object(checked(key)))
        return io.BufferedReader(ObjectReader(self.bucket, key, found["ETag"], found["ContentLength"]), CHUNK_BYTES)

    def put(self, key: str, content: bytes) -> None:
        """As in FileStore."""
        path = self.bucket.path(checked(key))
        checksum = checksum_of(content)
        self.bucket.wait(self.bucket.call("put_object", Key=path, Body=content, ChecksumSHA256=checksum))

    def upload(self, key: str, source: Path, tell: Callable[[int], None] | None = None) -> None:
        """As in FileStore."""
        self.bucket.wait(Uploading(self.bucket, checked(key), source, self._pieces, tell).run())

    def exists(self, key: str) -> bool:
        """As in FileStore."""
        return self.bucket.wait(self.bucket.head(checked(key))) is not None

    def size_bytes(self, key: str) -> int:
        """As in FileStore."""
        return int(self.bucket.wait(self.bucket.require_object(checked(key)))["ContentLength"])

    def delete(self, key: str) -> None:
        """As in FileStore."""
        self.bucket.wait(self.bucket.call("delete_object", Key=self.bucket.path(checked(key))))

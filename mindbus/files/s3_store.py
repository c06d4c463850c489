"""The file store in a bucket; large files go there in parts, an interrupted upload is resumed."""

import asyncio
import base64
import hashlib
import io
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mindbus.files.keys import validate_key
from mindbus.files.s3_bucket import Bucket, MultipartUpload, SeekableReader, checksum_of
from mindbus.tasks import gather_limited

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


# What is sent in one request has a checksum of the whole, so that storage need not read it again to publish it.
WHOLE_BYTES = 64 * 1024 * 1024


class FileSlice(SeekableReader):
    """A range of a file as a file of its own, read in place; rewound where a request is sent again."""

    def __init__(self, descriptor: int, start: int, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._descriptor, self._start = descriptor, start

    def readinto(self, target: "WriteableBuffer") -> int:
        """Raises OSError."""
        view = memoryview(target).cast("B")[: max(0, self.size_bytes - self.position)]
        size = os.preadv(self._descriptor, [view], self._start + self.position)
        self.position += size
        return size

    def checksum(self) -> str:
        """SHA-256 as S3 writes it: base64."""
        return base64.b64encode(self.digest("sha256")).decode()

    def digest(self, algorithm: str) -> bytes:
        """Digest of all the bytes; leaves the position at their beginning."""
        self.seek(0)
        digest = hashlib.file_digest(self, partial(hashlib.new, algorithm, usedforsecurity=False)).digest()
        self.seek(0)
        return digest


@dataclass(frozen=True, slots=True)
class UploadParts:
    """Files up to `whole_bytes` go in one request, larger ones in parts, `at_once` of them in parallel."""

    part_bytes: int
    at_once: int
    whole_bytes: int = WHOLE_BYTES


@dataclass(frozen=True, slots=True)
class S3Upload:
    """One file on its way to one key; runs on the loop of s3fs."""

    bucket: Bucket
    key: str
    source: Path
    parts: UploadParts
    progress: Callable[[int], None] | None = None

    async def run(self) -> None:
        """Raises OSError."""
        descriptor = await asyncio.to_thread(os.open, self.source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size_bytes = os.fstat(descriptor).st_size
            if size_bytes <= self.parts.whole_bytes:
                await self._send_whole(FileSlice(descriptor, 0, size_bytes))
            else:
                await self._send_parts(descriptor, size_bytes)
        finally:
            os.close(descriptor)

    async def _send_whole(self, body: FileSlice) -> None:
        checksum = await asyncio.to_thread(body.checksum)
        await self.bucket.call(
            "put_object",
            Key=self.bucket.path(self.key),
            Body=body,
            ContentLength=body.size_bytes,
            ChecksumSHA256=checksum,
        )

    async def _send_parts(self, descriptor: int, size_bytes: int) -> None:
        upload, stored = await self._begin()
        part_bytes, sent_bytes = self.parts.part_bytes, 0

        async def send(number: int, start: int) -> dict[str, Any]:
            nonlocal sent_bytes
            body = FileSlice(descriptor, start, min(part_bytes, size_bytes - start))
            part = await _send_part(upload, number, body, stored.get(number))
            sent_bytes += body.size_bytes
            if self.progress is not None:
                self.progress(sent_bytes)
            return part

        sends = [partial(send, number, start) for number, start in enumerate(range(0, size_bytes, part_bytes), 1)]
        await upload.complete(await gather_limited(sends, self.parts.at_once))

    async def _begin(self) -> tuple[MultipartUpload, dict[int, dict[str, Any]]]:
        """The latest unfinished upload of this key with its parts by number, or a new one: no key has two uploads."""
        path = self.bucket.path(self.key)
        listing = await self.bucket.call("list_multipart_uploads", Prefix=path)
        unfinished = [upload for upload in listing.get("Uploads", ()) if upload["Key"] == path]
        if not unfinished:
            return await MultipartUpload.create(self.bucket, path, ChecksumAlgorithm="SHA256"), {}
        upload_id = max(unfinished, key=lambda upload: upload["Initiated"])["UploadId"]
        pages = self.bucket.pages("list_parts", Key=path, UploadId=upload_id)
        stored = {part["PartNumber"]: part async for page in pages for part in page.get("Parts", ())}
        return MultipartUpload(self.bucket, path, upload_id), stored


async def _send_part(
    upload: MultipartUpload, number: int, body: FileSlice, stored: dict[str, Any] | None
) -> dict[str, Any]:
    checksum = await asyncio.to_thread(body.checksum)
    if stored is not None and await asyncio.to_thread(_is_stored, body, checksum, stored):
        etag = stored["ETag"]
    else:
        reply = await upload.call(
            "upload_part", PartNumber=number, Body=body, ContentLength=body.size_bytes, ChecksumSHA256=checksum
        )
        etag = reply["ETag"]
    return {"PartNumber": number, "ETag": etag, "ChecksumSHA256": checksum}


def _is_stored(body: FileSlice, checksum: str, stored: dict[str, Any]) -> bool:
    if stored["Size"] != body.size_bytes:
        return False
    if "ChecksumSHA256" in stored:
        return bool(stored["ChecksumSHA256"] == checksum)
    return str(stored["ETag"]).strip('"') == body.digest("md5").hex()


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
        return f"{self.url}/{validate_key(key)}"

    def open_read(self, key: str) -> IO[bytes]:
        """A reader of the version that the object has now."""
        head = self.bucket.wait(self.bucket.require_object(validate_key(key)))
        return io.BufferedReader(ObjectReader(self.bucket, key, head["ETag"], head["ContentLength"]), CHUNK_BYTES)

    def put(self, key: str, content: bytes) -> None:
        path = self.bucket.path(validate_key(key))
        self.bucket.wait(self.bucket.call("put_object", Key=path, Body=content, ChecksumSHA256=checksum_of(content)))

    def upload(self, key: str, source: Path, progress: Callable[[int], None] | None = None) -> None:
        self.bucket.wait(S3Upload(self.bucket, validate_key(key), source, self._parts, progress).run())

    def size_bytes(self, key: str) -> int:
        return int(self.bucket.wait(self.bucket.require_object(validate_key(key)))["ContentLength"])

    def delete(self, key: str) -> None:
        self.bucket.wait(self.bucket.call("delete_object", Key=self.bucket.path(validate_key(key))))


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

"""A local file on its way into a bucket."""

import asyncio
import base64
import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindbus.s3 import Bucket

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What is sent in one piece has a checksum of the whole, so that whoever publishes it need not read it again.
WHOLE_BYTES = 64 * 1024 * 1024
_HASHED_AT_ONCE = 1024 * 1024


class Slice(io.RawIOBase):
    """A part of a file as a file of its own, read where it lies."""

    def __init__(self, source: int, start: int, size_bytes: int) -> None:
        self._source, self._start, self._size_bytes = source, start, size_bytes
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is: a request that is sent again begins anew."""
        return True

    def tell(self) -> int:
        """Where the next byte comes from."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Within the part."""
        begins = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size_bytes}[whence]
        self._position = min(max(0, begins + offset), self._size_bytes)
        return self._position

    def readinto(self, target: "WriteableBuffer") -> int:
        """Raises OSError."""
        view = memoryview(target).cast("B")[: self._size_bytes - self._position]
        size = os.preadv(self._source, [view], self._start + self._position)
        self._position += size
        return size


@dataclass(frozen=True, slots=True)
class Pieces:
    """How a file is sent: up to `whole_bytes` at once, else so many parts of so many bytes at the same time."""

    part_bytes: int
    at_once: int
    whole_bytes: int = WHOLE_BYTES


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an upload; `number` counts from 1."""

    number: int
    body: Slice
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Uploading:
    """Sends the file whole, or in parts that are kept where it was interrupted; runs on the loop of s3fs."""

    bucket: Bucket
    key: str
    source: Path
    pieces: Pieces
    tell: Callable[[int], None] | None = None

    async def run(self) -> None:
        """Raises OSError."""
        source = await asyncio.to_thread(os.open, self.source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size_bytes = os.fstat(source).st_size
            if size_bytes <= self.pieces.whole_bytes:
                await self._send_whole(Slice(source, 0, size_bytes), size_bytes)
            else:
                await self._send_parts(source, size_bytes)
        finally:
            os.close(source)

    async def _send_whole(self, body: Slice, size_bytes: int) -> None:
        checksum = await asyncio.to_thread(_checksum, body)
        await self._call("put_object", Body=body, ContentLength=size_bytes, ChecksumSHA256=checksum)

    async def _send_parts(self, source: int, size_bytes: int) -> None:
        upload_id, sent = await self._begun()
        parts = [
            Part(number, Slice(source, start, size := min(self.pieces.part_bytes, size_bytes - start)), size)
            for number, start in enumerate(range(0, size_bytes, self.pieces.part_bytes), 1)
        ]
        free = asyncio.Semaphore(self.pieces.at_once)
        there = 0

        async def send(part: Part) -> dict[str, Any]:
            nonlocal there
            done = await self._send_part(part, upload_id, sent, free)
            there += part.size_bytes
            if self.tell is not None:
                self.tell(there)
            return done

        try:
            async with asyncio.TaskGroup() as group:
                sending = [group.create_task(send(part)) for part in parts]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        done = {"Parts": [task.result() for task in sending]}
        await self._call("complete_multipart_upload", UploadId=upload_id, MultipartUpload=done)

    async def _send_part(
        self, part: Part, upload_id: str, sent: dict[int, dict[str, Any]], free: asyncio.Semaphore
    ) -> dict[str, Any]:
        async with free:
            checksum = await asyncio.to_thread(_checksum, part.body)
            etag = await self._kept(part, sent.get(part.number), checksum)
            if etag is None:
                answer = await self._call(
                    "upload_part",
                    UploadId=upload_id,
                    PartNumber=part.number,
                    Body=part.body,
                    ContentLength=part.size_bytes,
                    ChecksumSHA256=checksum,
                )
                etag = answer["ETag"]
        return {"PartNumber": part.number, "ETag": etag, "ChecksumSHA256": checksum}

    async def _kept(self, part: Part, sent: dict[str, Any] | None, checksum: str) -> str | None:
        """The ETag of a part that lies in the store already, whose bytes are these."""
        if sent is None or sent["Size"] != part.size_bytes:
            return None
        etag = str(sent["ETag"])
        if "ChecksumSHA256" in sent:
            return etag if sent["ChecksumSHA256"] == checksum else None
        return etag if etag.strip('"') == await asyncio.to_thread(_md5, part.body) else None

    async def _begun(self) -> tuple[str, dict[int, dict[str, Any]]]:
        """The upload of this key that was begun last, with its parts, or a new one: a key is one upload's alone."""
        path = self.bucket.path(self.key)
        found = await self.bucket.call("list_multipart_uploads", Prefix=path)
        begun = [each for each in found.get("Uploads", ()) if each["Key"] == path]
        if not begun:
            return (await self._call("create_multipart_upload", ChecksumAlgorithm="SHA256"))["UploadId"], {}
        upload_id = max(begun, key=lambda each: each["Initiated"])["UploadId"]
        return upload_id, {part["PartNumber"]: part async for part in self._parts(upload_id)}

    async def _parts(self, upload_id: str) -> Any:
        after = 0
        while True:
            page = await self._call("list_parts", UploadId=upload_id, PartNumberMarker=after)
            for part in page.get("Parts", ()):
                yield part
            if not page.get("IsTruncated"):
                return
            after = page["NextPartNumberMarker"]

    async def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return await self.bucket.call(operation, Key=self.bucket.path(self.key), **parameters)


def _checksum(body: Slice) -> str:
    return base64.b64encode(_hashed(body, hashlib.sha256())).decode()


def _md5(body: Slice) -> str:
    return _hashed(body, hashlib.md5(usedforsecurity=False)).hex()


def _hashed(body: Slice, digest: "hashlib._Hash") -> bytes:
    body.seek(0)
    while piece := body.read(_HASHED_AT_ONCE):
        digest.update(piece)
    body.seek(0)
    return digest.digest()

"""One bucket of an object store, reached through s3fs."""

import asyncio
import base64
import errno
import hashlib
import io
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import aiohttp
import s3fs
from botocore.exceptions import BotoCoreError, ClientError

from mindbus.files.s3_errors import BucketMissing, ConcurrentRequest, as_os_error

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*(?:/[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*)*")
_CONNECT_S = 5
# The store may be silent while it copies gigabytes within itself.
_READ_TIMEOUT_S = 120
_ATTEMPTS = 3
_CONNECTIONS = 32
_CONFLICT_ATTEMPTS = 5
_CONFLICT_DELAY_S = 0.05

T = TypeVar("T")


class InvalidBucket(ValueError):
    """An object store is named as s3://bucket or s3://bucket/prefix; its host goes into MINDBUS_S3_ENDPOINT_URL."""


@dataclass(frozen=True, slots=True)
class S3Account:
    """Endpoint and credentials of an object store; what is None comes from the AWS_* environment and its files."""

    endpoint_url: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    region: str | None = None


class Bucket:
    """Single requests from any thread or event loop, run on the event loop of s3fs.

    Keys are relative to the prefix. Every failure is raised as an OSError.
    """

    def __init__(self, fs: Any, name: str, prefix: str) -> None:
        self.fs, self.name, self.prefix = fs, name, prefix

    def path(self, key: str) -> str:
        """The key as the store knows it, with the prefix."""
        return f"{self.prefix}/{key}" if self.prefix else key

    def key(self, path: str) -> str:
        return path.removeprefix(f"{self.prefix}/") if self.prefix else path

    @property
    def place(self) -> str:
        """Endpoint and bucket, for error messages."""
        return f"{self.fs.endpoint_url or 'AWS'}, bucket {self.name}"

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop of s3fs, for callers in a thread."""
        return asyncio.run_coroutine_threadsafe(work, self.fs.loop).result()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop of s3fs, for callers on any loop; cancelling the caller cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.fs.loop))

    async def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One request, on the loop of s3fs. Raises FileNotFoundError, ConditionFailed, other OSErrors."""
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                return await self._call(operation, parameters)
            except ConcurrentRequest:
                await asyncio.sleep(_CONFLICT_DELAY_S * 2**attempt)
                if isinstance(body := parameters.get("Body"), io.IOBase):
                    # Rewind: it was read to its end, and the store would wait for bytes that never come.
                    body.seek(0)
        return await self._call(operation, parameters)

    async def pages(self, operation: str, **parameters: Any) -> AsyncIterator[dict[str, Any]]:
        """Every page of a listing, on any loop."""
        client = await self.run(self.fs.set_session())
        pages = aiter(client.get_paginator(operation).paginate(Bucket=self.name, **parameters))
        while page := await self.run(self._translate_errors(operation, lambda: anext(pages, None))):
            yield page

    async def head(self, key: str) -> dict[str, Any] | None:
        """Description of an object, on the loop of s3fs; None where there is none."""
        try:
            return await self.call("head_object", Key=self.path(key), ChecksumMode="ENABLED")
        except FileNotFoundError:
            await self.require()
            return None

    async def require_object(self, key: str) -> dict[str, Any]:
        """Description of an object, on the loop of s3fs. Raises FileNotFoundError."""
        head = await self.head(key)
        if head is None:
            raise FileNotFoundError(errno.ENOENT, f"There is no object {key} ({self.place})")
        return head

    async def require(self) -> None:
        """Check that the bucket exists. Raises BucketMissing, CredentialsRefused, StoreUnreachable."""
        try:
            await self.call("head_bucket")
        except FileNotFoundError as error:
            raise BucketMissing.at(self.place) from error

    @asynccontextmanager
    async def body(self, key: str, **parameters: Any) -> AsyncIterator[Callable[[int], Coroutine[Any, Any, bytes]]]:
        """A function that reads the next bytes of an object as they arrive, on the loop of s3fs."""
        reply = await self.call("get_object", Key=self.path(key), **parameters)

        async def read(size_bytes: int) -> bytes:
            return await self._translate_errors("get_object", lambda: _read(reply["Body"], size_bytes))

        try:
            yield read
        finally:
            reply["Body"].close()

    async def _call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        return await self._translate_errors(
            operation, lambda: self.fs._call_s3(operation, Bucket=self.name, **parameters)
        )

    async def _translate_errors(self, operation: str, request: Callable[[], Awaitable[T]]) -> T:
        try:
            return await request()
        except (TimeoutError, OSError, BotoCoreError, ClientError, aiohttp.ClientError) as failure:
            raise as_os_error(failure, self.place, operation) from failure


@dataclass(frozen=True, slots=True)
class MultipartUpload:
    """An object written in parts; it exists once the upload is completed. Runs on the loop of s3fs."""

    bucket: Bucket
    path: str
    upload_id: str

    @classmethod
    async def create(cls, bucket: Bucket, path: str, **options: Any) -> Self:
        """Begin an upload. Raises OSError."""
        return cls(bucket, path, (await bucket.call("create_multipart_upload", Key=path, **options))["UploadId"])

    async def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One request about this upload. Raises OSError."""
        return await self.bucket.call(operation, Key=self.path, UploadId=self.upload_id, **parameters)

    async def complete(self, parts: Iterable[Mapping[str, Any]], **condition: str) -> None:
        """Make the parts the object. Raises ConditionFailed, other OSErrors."""
        await self.call("complete_multipart_upload", MultipartUpload={"Parts": list(parts)}, **condition)

    async def abort(self) -> None:
        """Give up the upload and its parts; no error where it is completed or aborted already."""
        try:
            await self.call("abort_multipart_upload")
        except FileNotFoundError:
            return


class SeekableReader(io.RawIOBase):
    """Base of readers of known size; subclasses read from `position`."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes, self.position = size_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.size_bytes}[whence]
        self.position = max(0, start + offset)
        return self.position


def checksum_of(content: bytes) -> str:
    """SHA-256 as S3 writes it: base64."""
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


async def _read(body: Any, size_bytes: int) -> bytes:
    """So many bytes, fewer only at the end; network pieces are small, and changing loops for each is expensive."""
    pieces = []
    while size_bytes and (piece := await body.read(size_bytes)):
        pieces.append(piece)
        size_bytes -= len(piece)
    return b"".join(pieces)


def open_bucket(url: str, account: S3Account) -> Bucket:
    """A bucket by its address; no request is sent yet. Raises InvalidBucket."""
    name, prefix = parse_bucket_url(url)
    fs = s3fs.S3FileSystem(
        endpoint_url=account.endpoint_url,
        key=account.access_key,
        secret=account.secret_key,
        client_kwargs={"region_name": account.region} if account.region else {},
        config_kwargs={
            # Bodies go with a checksum, which is signed: to sign the body besides would be to hash it twice.
            "s3": {"addressing_style": "path", "payload_signing_enabled": False},
            "signature_version": "s3v4",
            # Older stores know no checksums but those that are asked for.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
            "retries": {"mode": "standard", "total_max_attempts": _ATTEMPTS},
            "max_pool_connections": _CONNECTIONS,
            "connect_timeout": _CONNECT_S,
            "read_timeout": _READ_TIMEOUT_S,
        },
        use_listings_cache=False,
    )
    # botocore's retries rewind a body, those of s3fs would send its end alone.
    fs.retries = 1
    return Bucket(fs, name, prefix)


def parse_bucket_url(url: str) -> tuple[str, str]:
    """Bucket and prefix, which may be empty. Raises InvalidBucket."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    is_plain = url == f"s3://{parts.netloc}{parts.path}" and _BUCKET.fullmatch(parts.netloc)
    if not is_plain or (prefix and not _PREFIX.fullmatch(prefix)):
        raise InvalidBucket(f"{InvalidBucket.__doc__} Got: s3://{parts.hostname or ''}{parts.path}")
    return parts.netloc, prefix

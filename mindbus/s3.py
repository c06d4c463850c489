"""One bucket of an object store, reached through s3fs."""

import asyncio
import base64
import errno
import hashlib
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import aiohttp
import s3fs
from botocore.exceptions import BotoCoreError, ClientError

from mindbus.s3_failures import BucketMissing, Conflicting, as_os_error

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*(?:/[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*)*")
_CONNECT_S = 5
# The store may be silent while it copies gigabytes within itself.
_ANSWER_S = 120
_TRIES = 3
_CONNECTIONS = 32
_CONFLICTS = 5
_CONFLICT_S = 0.05

T = TypeVar("T")


class NotABucket(ValueError):
    """An object store is named as s3://bucket or s3://bucket/prefix; its host goes into MINDBUS_S3_ENDPOINT_URL."""


@dataclass(frozen=True, slots=True)
class S3Account:
    """Where an object store is, who asks; what is None comes from the AWS_* environment and its files."""

    endpoint_url: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    region: str | None = None


class Bucket:
    """Sends single requests from any thread or event loop; s3fs keeps a loop of its own for all of them.

    Keys are relative to the prefix. Whatever goes wrong is raised as an OSError.
    """

    def __init__(self, fs: Any, name: str, prefix: str) -> None:
        self.fs, self.name, self.prefix = fs, name, prefix

    def path(self, key: str) -> str:
        """The key as the store knows it."""
        return f"{self.prefix}/{key}" if self.prefix else key

    def key(self, path: str) -> str:
        """The other way round."""
        return path.removeprefix(f"{self.prefix}/") if self.prefix else path

    @property
    def place(self) -> str:
        """What a person is told."""
        return f"{self.fs.endpoint_url or 'AWS'}, bucket {self.name}"

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop of s3fs, for callers in a thread."""
        return asyncio.run_coroutine_threadsafe(work, self.fs.loop).result()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop of s3fs, for callers on another; a caller that is cancelled cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.fs.loop))

    async def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One request, on the loop of s3fs. Raises FileNotFoundError, ConditionFailed, other OSErrors."""
        for attempt in range(_CONFLICTS):
            try:
                return await self._call(operation, parameters)
            except Conflicting:
                await asyncio.sleep(_CONFLICT_S * 2**attempt)
                if isinstance(body := parameters.get("Body"), io.IOBase):
                    # It was read to its end; nothing would be sent, and the store would wait for it.
                    body.seek(0)
        return await self._call(operation, parameters)

    async def head(self, key: str) -> dict[str, Any] | None:
        """What is known of an object, on the loop of s3fs; None where there is none."""
        try:
            return await self.call("head_object", Key=self.path(key), ChecksumMode="ENABLED")
        except FileNotFoundError:
            await self.require()
            return None

    async def require_object(self, key: str) -> dict[str, Any]:
        """The same where there must be one, on the loop of s3fs. Raises FileNotFoundError."""
        found = await self.head(key)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, f"There is no object {key} ({self.place})")
        return found

    async def require(self) -> None:
        """Raises BucketMissing, CredentialsRefused, StoreUnreachable."""
        try:
            await self.call("head_bucket")
        except FileNotFoundError as missing:
            raise BucketMissing(errno.ENODEV, f"{BucketMissing.__doc__} ({self.place})") from missing

    @asynccontextmanager
    async def body(self, key: str, **parameters: Any) -> AsyncIterator[Callable[[int], Coroutine[Any, Any, bytes]]]:
        """An object's bytes as they arrive, on the loop of s3fs."""
        answer = await self.call("get_object", Key=self.path(key), **parameters)

        async def read(size_bytes: int) -> bytes:
            piece: bytes = await self._guarded("get_object", lambda: _read(answer["Body"], size_bytes))
            return piece

        try:
            yield read
        finally:
            answer["Body"].close()

    async def _call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        return cast(
            "dict[str, Any]",
            await self._guarded(operation, lambda: self.fs._call_s3(operation, Bucket=self.name, **parameters)),
        )

    async def _guarded(self, operation: str, request: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await request()
        except (TimeoutError, OSError, BotoCoreError, ClientError, aiohttp.ClientError) as failure:
            raise as_os_error(failure, self.place, operation) from failure


def checksum_of(content: bytes) -> str:
    """As S3 writes a sha256."""
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


async def _read(body: Any, size_bytes: int) -> bytes:
    """So much, less only at the end: the network's own pieces are small, to change loops for each is dear."""
    pieces = []
    while size_bytes and (piece := await body.read(size_bytes)):
        pieces.append(piece)
        size_bytes -= len(piece)
    return b"".join(pieces)


def open_bucket(url: str, account: S3Account) -> Bucket:
    """Sends nothing yet. Raises NotABucket."""
    name, prefix = named_bucket(url)
    fs = s3fs.S3FileSystem(
        endpoint_url=account.endpoint_url,
        key=account.access_key,
        secret=account.secret_key,
        client_kwargs={"region_name": account.region} if account.region else {},
        config_kwargs={
            # Bodies go with a checksum, which is signed: to sign the body besides would be to hash it twice.
            "s3": {"addressing_style": "path", "payload_signing_enabled": False},
            "signature_version": "s3v4",
            # Other checksums than we ask for are news to older stores.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
            "retries": {"mode": "standard", "total_max_attempts": _TRIES},
            "max_pool_connections": _CONNECTIONS,
            "connect_timeout": _CONNECT_S,
            "read_timeout": _ANSWER_S,
        },
        use_listings_cache=False,
    )
    # botocore's retries rewind a body, those of s3fs would send its end alone.
    fs.retries = 1
    return Bucket(fs, name, prefix)


def named_bucket(url: str) -> tuple[str, str]:
    """The bucket and the prefix, which may be empty. Raises NotABucket."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    is_plain = url == f"s3://{parts.netloc}{parts.path}" and _BUCKET.fullmatch(parts.netloc)
    if not is_plain or (prefix and not _PREFIX.fullmatch(prefix)):
        raise NotABucket(f"{NotABucket.__doc__} Got: s3://{parts.hostname or ''}{parts.path}")
    return parts.netloc, prefix

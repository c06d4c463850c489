"""The claim check: data too large for the bus waits in the file store, digest-checked."""

import asyncio
import contextvars
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from bus_schema.messages import Command, Query
from bus_schema.strict_json import parse_object
from bus_schema.uploads import MAX_CLAIM_BYTES, OpenClaim, RequestClaim
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.files.presigned import AddressExpired, PresignedTransfer
from mindbus.files.store import FileStore
from mindbus.spans import span

_TIMEOUT_S = 10.0

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound=BaseModel)


class ClaimTooLarge(ValueError):
    """The data of a message is at most 64 MiB; register it as an artifact and send its ref."""


class ClaimLost(Exception):
    """The data of this message is not in the file store, or is not what its digest says."""


class NoWayToClaims(OSError):
    """Large data can be neither read nor stored now: storage, which signs the addresses, is away or refuses."""


class Requester(Protocol):
    """The part of a client that asks storage for signed addresses."""

    async def request(self, command: Command[ResultT], *, timeout_s: float | None = None) -> ResultT: ...


class Claims:
    """Storage of the data of large messages: in `files`, or without them over addresses that storage signs on request.

    A claim's key holds the digest of the data and is known only from a message, or to a process that has the data;
    knowing it is the right to read. The bytes are checked against it by every reader, and by the store, since an
    address is signed for those bytes alone.
    """

    def __init__(self, files: FileStore | None = None) -> None:
        self.files = files
        self._transfer = PresignedTransfer()
        self._client: Requester | None = None

    def ask_through(self, client: Requester) -> None:
        """Set the client whose requests go to storage."""
        self._client = client

    async def deposit(self, data: dict[str, Any]) -> str:
        """Store the data; the key holds its digest, so a repetition has no effect.

        Raises ClaimTooLarge; OSError where the store is away.
        """
        content = json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
        if len(content) > MAX_CLAIM_BYTES:
            raise ClaimTooLarge(f"{ClaimTooLarge.__doc__} Got: {len(content)} bytes")
        with span("blob put", "CLIENT", mindbus__size_bytes=len(content)):
            return await self._keep(content)

    async def redeem(self, key: str) -> dict[str, Any]:
        """Read the data back. Raises ClaimLost; OSError where the store is away."""
        try:
            with span("blob get", "CLIENT", mindbus__key=key):
                content = await self._fetch(key)
        except FileNotFoundError as missing:
            raise ClaimLost(f"{ClaimLost.__doc__} ({key})") from missing
        if hashlib.sha256(content).hexdigest() != key.rsplit("/", 1)[-1]:
            raise ClaimLost(f"{ClaimLost.__doc__} ({key})")
        return parse_object(content)

    async def _keep(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        if self.files is None:
            return await _once_more(lambda: self._upload(content, digest))
        key = f"claims/{datetime.now(UTC):%Y/%m/%d}/{digest}"
        await asyncio.to_thread(self.files.put, key, content)
        return key

    async def _fetch(self, key: str) -> bytes:
        if self.files is None:
            return await _once_more(lambda: self._download(key))
        return await asyncio.to_thread(_read, self.files, key)

    async def _upload(self, content: bytes, digest: str) -> str:
        upload = await self._ask(RequestClaim(size_bytes=len(content), checksum=f"sha256:{digest}"))
        if upload.presigned_put is None:
            raise NoWayToClaims(f"{NoWayToClaims.__doc__} (its store is a folder)")
        await self._transfer.send(upload.presigned_put.url, upload.presigned_put.headers, _whole(content))
        return upload.key

    async def _download(self, key: str) -> bytes:
        signed = (await self._ask(OpenClaim(key=key))).presigned_url
        if signed is None:
            raise NoWayToClaims(f"{NoWayToClaims.__doc__} (its store is a folder)")
        async with self._transfer.fetch(signed.url, 0, MAX_CLAIM_BYTES + 1) as pieces:
            return b"".join([piece async for piece in pieces])

    async def _ask(self, query: Query[ResultT]) -> ResultT:
        """Request outside the context of the current message: another delivery of it may need no request."""
        if self._client is None:
            raise NoWayToClaims(NoWayToClaims.__doc__)
        request = self._client.request(query, timeout_s=_TIMEOUT_S)
        request_task = asyncio.get_running_loop().create_task(request, context=contextvars.Context())
        try:
            return await request_task
        except (BusUnavailable, NoReply, ReplyError) as failure:
            raise NoWayToClaims(f"{NoWayToClaims.__doc__} ({failure})") from failure


def _read(files: FileStore, key: str) -> bytes:
    with files.open_read(key) as reader:
        return reader.read(MAX_CLAIM_BYTES + 1)


async def _once_more(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except AddressExpired:
        return await work()


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content

"""The claim check for who has no access to the file store: by addresses that storage signs."""

import asyncio
import contextvars
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from bus_schema.messages import Query
from bus_schema.uploads import MAX_CLAIM_BYTES, OpenClaim, RequestClaim
from mindbus.bus.claims import Claims
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.files.presigned import AddressExpired, PresignedTransfer

if TYPE_CHECKING:
    from mindbus.bus.client import Client

_PATIENCE_S = 10.0

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound=BaseModel)


class NoWayToClaims(OSError):
    """Large data cannot be had or left here just now: storage, which would sign for it, says nothing, or no."""


class PresignedClaims(Claims):
    """Asks storage where to leave large data, where to find it; the question itself is small.

    Whoever has a claim's key was told it with a message, or knows the data: the key holds its digest. That is all the
    right it takes to read, as it is for who reads the store itself. What is left there is checked against the key: by
    the store, which was signed for those bytes alone, and by everyone who reads it.
    """

    def __init__(self, courier: PresignedTransfer | None = None) -> None:
        self._courier = courier or PresignedTransfer()
        self._client: Client | None = None

    def ask_through(self, client: "Client") -> None:
        """Speak to storage as this participant."""
        self._client = client

    async def _keep(self, content: bytes) -> str:
        wanted = RequestClaim(size_bytes=len(content), checksum=f"sha256:{hashlib.sha256(content).hexdigest()}")
        return await _once_more(lambda: self._leave(wanted, content))

    async def _fetch(self, key: str) -> bytes:
        return await _once_more(lambda: self._find(key))

    async def _leave(self, wanted: RequestClaim, content: bytes) -> str:
        upload = await self._ask(wanted)
        if upload.presigned_put is None:
            raise NoWayToClaims(f"{NoWayToClaims.__doc__} (its store is a folder)")
        await self._courier.send(upload.presigned_put.url, upload.presigned_put.headers, _whole(content))
        return upload.key

    async def _find(self, key: str) -> bytes:
        signed = (await self._ask(OpenClaim(key=key))).presigned_url
        if signed is None:
            raise NoWayToClaims(f"{NoWayToClaims.__doc__} (its store is a folder)")
        found = bytearray()
        async with self._courier.fetch(signed.url, 0, MAX_CLAIM_BYTES + 1) as pieces:
            async for piece in pieces:
                found += piece
        return bytes(found)

    async def _ask(self, query: Query[ResultT]) -> ResultT:
        """Apart from the story at hand: another delivery of its message may have nothing to ask."""
        if self._client is None:
            raise NoWayToClaims(NoWayToClaims.__doc__)
        request = self._client.request(query, timeout_s=_PATIENCE_S)
        asking = asyncio.get_running_loop().create_task(request, context=contextvars.Context())
        try:
            return await asking
        except (BusUnavailable, NoReply, ReplyError) as failure:
            raise NoWayToClaims(f"{NoWayToClaims.__doc__} ({failure})") from failure


async def _once_more(work: Callable[[], Awaitable[T]]) -> T:
    try:
        return await work()
    except AddressExpired:
        return await work()


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content

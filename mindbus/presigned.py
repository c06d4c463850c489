"""Bytes to and from an object store, by addresses that storage has signed."""

import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import cached_property
from http import HTTPStatus
from ssl import SSLContext

import httpx

from mindbus.logs import keep_signatures_out, without_signatures

# As much as is lost where a connection breaks off.
PIECE_BYTES = 64 * 1024
_ERROR_BYTES = 64 * 1024
_TIMEOUT = httpx.Timeout(60, connect=5)
_CODE = re.compile(rb"<Code>([A-Za-z0-9.]{1,64})</Code>")
_OTHER_BYTES = {"BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "IncompleteBody"}
_EXPIRED = {"ExpiredToken", "TokenRefreshRequired"}


class StoreAway(OSError):
    """The object store does not do what was signed; see that it is up, that MINDBUS_S3_PUBLIC_ENDPOINT_URL is right."""


class AddressExpired(OSError):
    """The object store does not take the address, or takes it no more; ask storage for a fresh one."""


class BytesRefused(OSError):
    """The object store was sent other bytes than the address was signed for."""


class Courier:
    """Carries bytes in pieces, a connection for each transfer; the addresses are shown to nobody, in no log."""

    def __init__(self) -> None:
        keep_signatures_out()

    async def send(self, url: str, headers: Mapping[str, str], content: AsyncIterable[bytes]) -> None:
        """PUT the bytes that the address was signed for. Raises AddressExpired, BytesRefused, StoreAway."""
        with _plainly():
            async with self._client() as client, client.stream("PUT", url, headers=headers, content=content) as answer:
                # Whoever holds the address may send these bytes alone: an earlier try of theirs has come through.
                if answer.status_code != HTTPStatus.PRECONDITION_FAILED:
                    await _require(answer)

    @asynccontextmanager
    async def fetch(self, url: str, start: int = 0, end: int | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET the bytes from `start` to before `end`, in pieces.

        Raises AddressExpired, StoreAway; FileNotFoundError where there is nothing.
        """
        headers = {"accept-encoding": "identity"}
        if is_part := bool(start) or end is not None:
            headers["range"] = f"bytes={start}-{'' if end is None else end - 1}"
        with _plainly():
            async with self._client() as client, client.stream("GET", url, headers=headers) as answer:
                await _require(answer)
                if is_part and answer.status_code != HTTPStatus.PARTIAL_CONTENT:
                    raise StoreAway(f"{StoreAway.__doc__} (it gives no ranges)")
                async with aclosing(_pieces(answer)) as pieces:
                    yield pieces

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=_TIMEOUT, verify=self._certificates)

    @cached_property
    def _certificates(self) -> SSLContext:
        # To read them takes longer than a small artifact takes to send.
        return httpx.create_ssl_context()


@contextmanager
def _plainly() -> Iterator[None]:
    """Failures in words that do not name the address."""
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as failure:
        reason = f"{type(failure).__name__}: {without_signatures(str(failure))}"
        raise StoreAway(f"{StoreAway.__doc__} ({reason})") from None


async def _pieces(answer: httpx.Response) -> AsyncGenerator[bytes]:
    with _plainly():
        async with aclosing(answer.aiter_raw(PIECE_BYTES)) as pieces:  # type: ignore[type-var]  # it is a generator
            async for piece in pieces:
                yield piece


async def _require(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    found = _CODE.search(await _beginning(answer))
    code = found[1].decode() if found else ""
    # Nothing else of the answer is shown: it may repeat what was signed.
    told = f"status {answer.status_code} {code}".rstrip()
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise FileNotFoundError(told)
    kind: type[OSError] = BytesRefused if code in _OTHER_BYTES else StoreAway
    if answer.status_code == HTTPStatus.FORBIDDEN or code in _EXPIRED:
        kind = AddressExpired
    raise kind(f"{kind.__doc__} ({told})")


async def _beginning(answer: httpx.Response) -> bytes:
    async for chunk in answer.aiter_bytes(_ERROR_BYTES):
        return chunk
    return b""

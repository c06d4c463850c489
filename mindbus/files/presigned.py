"""Transfers to and from a file store by presigned addresses."""

import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import cached_property
from http import HTTPStatus
from ssl import SSLContext
from typing import TYPE_CHECKING

from mindbus.redaction import redact_other_logs, without_secrets

if TYPE_CHECKING:
    import httpx

# Lost at most where a connection breaks off.
PIECE_BYTES = 64 * 1024
_ERROR_BYTES = 64 * 1024
_TIMEOUT_S, _CONNECT_WITHIN_S = 60, 5
# A proxy of the environment cannot reach this machine.
_WITHOUT_PROXY = ("all://localhost", "all://127.0.0.1", "all://[::1]")
# Of an object store, or of the gateway.
_CODE = re.compile(rb'(?:<Code>|"code":")([A-Za-z0-9._]{1,64})(?:</Code>|")')
_DIGEST_CODES = {"checksum_mismatch", "BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "IncompleteBody"}
_EXPIRED_CODES = {"ExpiredToken", "TokenRefreshRequired"}


class StoreUnavailable(OSError):
    """The file store fails; see that it is up, and MINDBUS_S3_PUBLIC_ENDPOINT_URL or MINDBUS_GATEWAY_PUBLIC_URL."""


class AddressExpired(OSError):
    """The file store refuses the address, or it has expired; ask storage for a fresh one."""


class BytesRefused(OSError):
    """The file store was sent other bytes than the address was signed for."""


class PresignedTransfer:
    """PUT and GET in pieces, one connection for each transfer; addresses appear in no log and no error."""

    def __init__(self) -> None:
        redact_other_logs()

    async def send(self, url: str, headers: Mapping[str, str], content: AsyncIterable[bytes]) -> None:
        """PUT the bytes that the address was signed for.

        Raises AddressExpired, BytesRefused, StoreUnavailable."""
        with _without_address():
            async with (
                self._client() as client,
                client.stream("PUT", url, headers=headers, content=content) as response,
            ):
                # The address admits these bytes alone, so an earlier attempt has succeeded.
                if response.status_code != HTTPStatus.PRECONDITION_FAILED:
                    await _require(response)

    @asynccontextmanager
    async def fetch(self, url: str, start: int = 0, end: int | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET the bytes [start, end) in pieces.

        Raises AddressExpired, StoreUnavailable; FileNotFoundError where there is nothing.
        """
        headers = {"accept-encoding": "identity"}
        if is_part := bool(start) or end is not None:
            headers["range"] = f"bytes={start}-{'' if end is None else end - 1}"
        with _without_address():
            async with self._client() as client, client.stream("GET", url, headers=headers) as response:
                await _require(response)
                if is_part and response.status_code != HTTPStatus.PARTIAL_CONTENT:
                    raise StoreUnavailable(f"{StoreUnavailable.__doc__} (it ignores ranges)")
                async with aclosing(_pieces(response)) as pieces:
                    yield pieces

    def _client(self) -> "httpx.AsyncClient":
        # Imported here: a client with a folder or with credentials of its own needs no HTTP.
        import httpx

        timeout = httpx.Timeout(_TIMEOUT_S, connect=_CONNECT_WITHIN_S)
        direct = dict.fromkeys(_WITHOUT_PROXY)
        return httpx.AsyncClient(timeout=timeout, verify=self._certificates, mounts=direct)

    @cached_property
    def _certificates(self) -> SSLContext:
        import httpx

        # Reading them takes longer than sending a small artifact.
        return httpx.create_ssl_context()


@contextmanager
def _without_address() -> Iterator[None]:
    """Translate errors of httpx, whose texts name the address."""
    import httpx

    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as failure:
        reason = f"{type(failure).__name__}: {without_secrets(str(failure))}"
        raise StoreUnavailable(f"{StoreUnavailable.__doc__} ({reason})") from None


async def _pieces(response: "httpx.Response") -> AsyncGenerator[bytes]:
    with _without_address():
        async with aclosing(response.aiter_raw(PIECE_BYTES)) as pieces:  # type: ignore[type-var]  # it is a generator
            async for piece in pieces:
                yield piece


async def _require(response: "httpx.Response") -> None:
    if response.is_success:
        return
    match = _CODE.search(await anext(aiter(response.aiter_bytes(_ERROR_BYTES)), b""))
    code = match[1].decode() if match else ""
    # Nothing else of the response is shown: it may repeat what was signed.
    status = f"status {response.status_code} {code}".rstrip()
    if response.status_code == HTTPStatus.NOT_FOUND:
        raise FileNotFoundError(status)
    kind: type[OSError] = BytesRefused if code in _DIGEST_CODES else StoreUnavailable
    if response.status_code == HTTPStatus.FORBIDDEN or code in _EXPIRED_CODES:
        kind = AddressExpired
    raise kind(f"{kind.__doc__} ({status})")

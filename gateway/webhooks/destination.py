"""Destinations of webhooks: public addresses over TLS, and those that the operator allows."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

import httpx

from bus_schema.replies import Code
from mindbus.errors import Rejected

_PORTS = {"https": 443, "http": 80}
_LOOKUP_S = 2.0


class ForbiddenDestination(Rejected, code=Code.INVALID):
    """A webhook goes to a public https:// address, or to one in MINDBUS_GATEWAY_WEBHOOK_HOSTS."""


@dataclass(frozen=True)
class Destination:
    """A URL, and the address to connect to: resolved once, so that the name cannot mean another one afterwards."""

    url: str
    host: str
    address: str


async def destination_of(url: str, allowed: str) -> Destination:
    """Destination of a webhook; `allowed` are hosts, addresses, networks by commas. Raises ForbiddenDestination."""
    try:
        parts = urlsplit(url)
        port, host = parts.port or _PORTS[parts.scheme], parts.hostname or ""
        # What sends them is stricter about letters and length.
        httpx.URL(url)
    except (ValueError, KeyError, httpx.InvalidURL):
        raise _forbidden(url, "it is not an http:// or https:// URL") from None
    if not host or parts.username or parts.password:
        raise _forbidden(url, "it names no host, or a password" if host else "it names no host")
    addresses = await _addresses(host, port, url)
    names = [each.strip() for each in allowed.split(",") if each.strip()]
    if host not in names:
        foreign = [each for each in addresses if not _is_in(each, names)]
        if foreign and parts.scheme != "https":
            raise _forbidden(url, "it is not encrypted")
        if inner := next((each for each in foreign if not _is_public(each)), None):
            raise _forbidden(url, f"{host} is {inner}, which is not public")
    return Destination(url, host, str(addresses[0]))


async def _addresses(host: str, port: int, url: str) -> list[IPv4Address | IPv6Address]:
    try:
        async with asyncio.timeout(_LOOKUP_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        raise _forbidden(url, f"there is no host {host}") from None
    return [ip_address(str(each[4][0]).partition("%")[0]) for each in found]


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    inner = getattr(address, "ipv4_mapped", None) or address
    return inner.is_global and not (inner.is_multicast or inner.is_reserved or inner.is_loopback)


def _is_in(address: IPv4Address | IPv6Address, names: Sequence[str]) -> bool:
    for name in names:
        try:
            if address in ip_network(name, strict=False):
                return True
        except ValueError:
            continue
    return False


def _forbidden(url: str, why: str) -> ForbiddenDestination:
    return ForbiddenDestination(message=f"{ForbiddenDestination.__doc__} ({url[:200]}: {why})")

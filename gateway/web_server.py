"""Address of the gateway: the socket it binds, the URL it is reached at."""

import socket
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mindbus.errors import MindBusError
from mindbus.run_dir import last_gateway_url

if TYPE_CHECKING:
    from config.settings import FleetSettings

DEFAULT_PORT = 8040
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class CannotListen(MindBusError, OSError):
    """The gateway cannot listen there: set MINDBUS_GATEWAY_HOST, MINDBUS_GATEWAY_PORT to what is free here."""


def bound_socket(settings: "FleetSettings") -> socket.socket:
    """A listening socket at the set port; without one at the last, the default or any free port.

    Raises CannotListen.
    """
    if settings.gateway_port is not None:
        return _bound(settings.gateway_host, settings.gateway_port)
    # Open pages reconnect to the last port.
    for port in (urlsplit(last_gateway_url(settings) or "").port or DEFAULT_PORT, DEFAULT_PORT):
        with suppress(CannotListen):
            return _bound(settings.gateway_host, port)
    return _bound(settings.gateway_host, 0)


def url_of(bound: socket.socket, scheme: str = "http") -> str:
    """The URL to open in a browser on this machine."""
    host, port = bound.getsockname()[:2]
    host = _LOOPBACK_OF.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(f"{CannotListen.__doc__} ({host}: {error})") from error
    try:
        # A restarted gateway must not wait for the connections of the previous one.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError as error:
        bound.close()
        raise CannotListen(f"{CannotListen.__doc__} ({host}:{port}: {error})") from error
    return bound

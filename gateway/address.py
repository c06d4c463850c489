"""Where the gateway can be found."""

import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from mindbus.settings import Settings

USUAL_PORT = 8040
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class CannotListen(OSError):
    """The gateway cannot listen there: set MINDBUS_GATEWAY_HOST, MINDBUS_GATEWAY_PORT to what is free here."""


def bound_socket(settings: Settings) -> socket.socket:
    """Listen as set; without a port where it was before, at the usual one, or at any that is free.

    Raises CannotListen.
    """
    if settings.gateway_port is not None:
        return _bound(settings.gateway_host, settings.gateway_port)
    for port in (_port_before(settings), USUAL_PORT):
        with suppress(CannotListen):
            return _bound(settings.gateway_host, port)
    return _bound(settings.gateway_host, 0)


def url_of(listening: socket.socket) -> str:
    """What to open in a browser on this machine."""
    host, port = listening.getsockname()[:2]
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def url_file(settings: Settings) -> Path:
    """Where a gateway says so; it stays for the one that comes after it."""
    return settings.run_dir / "gateway_url"


def known_url(settings: Settings) -> str | None:
    """The address of the gateway that runs on this data folder, or ran last."""
    file = url_file(settings)
    return file.read_text().strip() if file.exists() else None


def _port_before(settings: Settings) -> int:
    # Pages that are open come back to it.
    return urlsplit(known_url(settings) or "").port or USUAL_PORT


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as unknown:
        raise CannotListen(f"{CannotListen.__doc__} ({host}: {unknown})") from unknown
    try:
        # A gateway that comes back must not wait for the connections of the one before.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as taken:
        listening.close()
        raise CannotListen(f"{CannotListen.__doc__} ({host}:{port}: {taken})") from taken
    return listening

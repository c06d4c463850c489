"""Where the gateway can be found."""

import socket
from pathlib import Path

from mindbus.settings import Settings

USUAL_PORT = 8040
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def bound_socket(settings: Settings) -> socket.socket:
    """Listen as set; without a port at the usual one, or at any that is free. Raises OSError."""
    if settings.gateway_port is not None:
        return _bound(settings.gateway_host, settings.gateway_port)
    try:
        return _bound(settings.gateway_host, USUAL_PORT)
    except OSError:
        return _bound(settings.gateway_host, 0)


def url_of(listening: socket.socket) -> str:
    """What to open in a browser on this machine."""
    host, port = listening.getsockname()[:2]
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def url_file(settings: Settings) -> Path:
    """Where a running gateway says so."""
    return settings.run_dir / "gateway_url"


def known_url(settings: Settings) -> str | None:
    """The address of the gateway that runs on this data folder, if one does."""
    file = url_file(settings)
    return file.read_text().strip() if file.exists() else None


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        # A gateway that comes back must not wait for the connections of the one before.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening

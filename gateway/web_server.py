"""Web server of the gateway: the socket it binds, the URL it is reached at, the connections that it keeps open."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from config.settings import FleetSettings
from mindbus.errors import MindBusError
from mindbus.run_dir import last_gateway_url

DEFAULT_PORT = 8040
_DRAIN_S = 3
_MOST_CONNECTIONS = 1000
# Longer than reverse proxies usually keep a connection that nobody uses (60 s): a request must not meet its end.
_IDLE_S = 75
# Bytes of a head, cookies included.
_LARGEST_HEAD = 64 * 1024
# Accepted in one turn of the loop, before any of them can make room for another.
_BACKLOG = 100
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class CannotListen(MindBusError, OSError):
    """The gateway cannot listen there: set MINDBUS_GATEWAY_HOST, MINDBUS_GATEWAY_PORT to what is free here."""


class ServerNotStarted(MindBusError):
    """The web server ended before it served; its log says why."""


def bound_socket(settings: FleetSettings) -> socket.socket:
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


@asynccontextmanager
async def serving(
    app: ASGIApp,
    bound: socket.socket,
    settings: FleetSettings,
    most_connections: int = _MOST_CONNECTIONS,
    idle_s: int = _IDLE_S,
) -> AsyncIterator[None]:
    """Uvicorn for one app on one bound socket; at the end open requests finish within the drain time.

    Whoever connects, half of the files that this process may open are for its own work.
    """
    open_files, _ = getrlimit(RLIMIT_NOFILE)
    if open_files != RLIM_INFINITY:
        most_connections = min(most_connections, open_files // 2)
    config = uvicorn.Config(
        app,
        http=_Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        # Of others a header that names the client is a lie that would get around the limit of wrong tokens.
        proxy_headers=bool(settings.gateway_trusted_proxies),
        forwarded_allow_ips=settings.gateway_trusted_proxies,
        ssl_certfile=settings.gateway_tls_cert,
        ssl_keyfile=settings.gateway_tls_key_file,
        backlog=_BACKLOG,
        limit_concurrency=most_connections,
        timeout_keep_alive=idle_s,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    server = _EmbeddedServer(config)
    served = asyncio.create_task(server.serve([bound]), name="web server")
    while not server.started:
        if served.done():
            raise ServerNotStarted
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await served


class _EmbeddedServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield


class _Flow(FlowControl):
    """Tells when we read on what a client sends, whose turn it is from then."""

    def __init__(self, transport: asyncio.Transport, on_resume: Callable[[], None]) -> None:
        super().__init__(transport)
        self._on_resume = on_resume

    def resume_reading(self) -> None:
        if self.read_paused:
            super().resume_reading()
            self._on_resume()


class _Connection(HttpToolsProtocol):
    """A connection whose client has to go on: of too many, the one that has kept us waiting longest is closed.

    Uvicorn refuses requests where there are too many connections, and closes those that ask no more; not those that
    never ask, whose heads or bodies do not end, or who do not read, which would leave the workers of this process no
    file to open, no memory.
    """

    # Of the loop's clock; None while it is our turn.
    _waits_since: float | None = None
    _patience: asyncio.TimerHandle | None = None
    _owes_head = True
    _owes_body = _owes_reading = False
    # Bytes since the last head, or piece of a body.
    _fruitless = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self._take_turns)
        self._take_turns()
        # At the limit itself Uvicorn would refuse every request.
        if len(self.connections) >= (self.limit_concurrency or _MOST_CONNECTIONS):
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owes_head = self._owes_body = self._owes_reading = False
        self._take_turns()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._fruitless += len(data)
        super().data_received(data)
        if self._fruitless > _LARGEST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"Headers of more than {_LARGEST_HEAD} bytes.")
        elif self._owes_body and not self._owes_head:
            self._take_turns()

    def on_headers_complete(self) -> None:
        self._fruitless = 0
        self._owes_head, self._owes_body = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._fruitless = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._owes_body = False
        self._take_turns()

    def on_response_complete(self) -> None:
        self._owes_head = not self.pipeline
        super().on_response_complete()
        self._take_turns()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._owes_reading = True
        self._take_turns()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._owes_reading = False
        self._take_turns()

    def _take_turns(self) -> None:
        """Wait for the client from now on, or no more."""
        if self._patience is not None:
            self._patience.cancel()
        self._waits_since = self._patience = None
        owes_body = self._owes_body and not self.flow.read_paused
        if self._owes_head or owes_body or self._owes_reading:
            self._waits_since = self.loop.time()
            self._patience = self.loop.call_later(self.timeout_keep_alive, self._lose_patience)

    def _lose_patience(self) -> None:
        if self in self.connections:
            self.transport.abort()

    def _make_room(self) -> None:
        waits = {
            each: each._waits_since
            for each in self.connections
            if isinstance(each, _Connection) and each._waits_since is not None
        }
        longest = min(waits, key=waits.__getitem__)
        self.connections.discard(longest)
        longest.transport.abort()


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

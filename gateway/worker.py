"""The gateway as a worker, with its web server in the worker's event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from config.settings import FleetSettings
from gateway.access_tokens import AccessKeys, token_file, token_of
from gateway.address import bound_socket, url_file, url_of
from gateway.app import create_app
from gateway.backend import Backend
from gateway.event_streams import EventStreams
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import MindBusError
from mindbus.files.disk import write_private
from mindbus.logs import logger

_DRAIN_S = 3
_MAX_CONNECTIONS = 1000


class ServerNotStarted(MindBusError):
    """The web server ended before it served; its log says why."""


UserInterface = Callable[[Backend, FastAPI], AbstractAsyncContextManager[None]]


class GatewayWorker(Worker):
    """A worker without handlers: it turns HTTP requests into requests on the bus."""

    name = "gateway"

    def __init__(self, context: WorkerContext, ui: UserInterface | None = None) -> None:
        """`ui` answers all paths that the API does not."""
        self._context, self._ui = context, ui
        self.backend = Backend(context.bus, context.settings_as(FleetSettings), context.clock)
        self.streams = EventStreams(context.settings_as(FleetSettings).gateway_max_streams)
        self._running = AsyncExitStack()
        self.url = ""

    async def start(self) -> None:
        settings = self._context.settings_as(FleetSettings)
        token = token_of(settings)
        if token is not None and token.is_new:
            logger().info("gateway token made", file=str(token_file(settings)))
        bound = bound_socket(settings)
        self.url = url_of(bound)
        app = create_app(self.backend, AccessKeys(token.text if token else None, self._context.clock), self.streams)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.backend.running())
            if self._ui is not None:
                await stack.enter_async_context(self._ui(self.backend, app))
            await stack.enter_async_context(_serving(app, bound))
            self._running = stack.pop_all()
        write_private(url_file(settings), self.url)
        logger().info("gateway serves", url=self.url, asks_for_token=token is not None)

    async def stop(self) -> None:
        """End streams first, so that their clients reconnect, then the server, the UI and the backend."""
        self.streams.close()
        await self._running.aclose()


@asynccontextmanager
async def _serving(app: ASGIApp, bound: socket.socket) -> AsyncIterator[None]:
    """Uvicorn for one app on one bound socket; at the end open requests finish within the drain time."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    server = _EmbeddedServer(config)
    serving = asyncio.create_task(server.serve([bound]), name="web server")
    while not server.started:
        if serving.done():
            raise ServerNotStarted
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await serving


class _EmbeddedServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield

"""The gateway as a worker, with its web server in the worker's event loop."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

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


class UserInterface(Protocol):
    """A web UI on top of the API."""

    def mount(self, app: FastAPI) -> None:
        """Answer all paths that the API does not."""

    def start(self) -> None:
        """The backend has started."""

    async def stop(self) -> None:
        """The backend is about to stop."""


class GatewayWorker(Worker):
    """A worker without handlers: it turns HTTP requests into requests on the bus."""

    name = "gateway"

    def __init__(self, context: WorkerContext, ui: Callable[[Backend], UserInterface] | None = None) -> None:
        self._context = context
        self.backend = Backend(context.bus, context.settings_as(FleetSettings), context.clock)
        self._ui = ui(self.backend) if ui else None
        self.streams = EventStreams(context.settings_as(FleetSettings).gateway_max_streams)
        self._server: WebServer | None = None
        self.url = ""

    async def start(self) -> None:
        settings = self._context.settings_as(FleetSettings)
        token = token_of(settings)
        if token is not None and token.is_new:
            logger().info("gateway token made", file=str(token_file(settings)))
        bound = bound_socket(settings)
        self.url = url_of(bound)
        app = create_app(self.backend, AccessKeys(token.text if token else None, self._context.clock), self.streams)
        self._server = WebServer(app, bound)
        await self.backend.start()
        if self._ui is not None:
            self._ui.mount(app)
            self._ui.start()
        await self._server.start()
        write_private(url_file(settings), self.url)
        logger().info("gateway serves", url=self.url, asks_for_token=token is not None)

    async def stop(self) -> None:
        """End streams first, so that their clients reconnect, then the server, the UI and the backend."""
        self.streams.close()
        if self._server is not None:
            await self._server.stop()
        if self._ui is not None:
            await self._ui.stop()
        await self.backend.stop()


class WebServer:
    """Uvicorn for one app on one bound socket."""

    def __init__(self, app: ASGIApp, bound: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_DRAIN_S,
        )
        self._server, self._socket = _EmbeddedServer(config), bound
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._serving = asyncio.create_task(self._server.serve([self._socket]), name="web server")
        while not self._server.started:
            if self._serving.done():
                raise ServerNotStarted
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Finish open requests within the drain time."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _EmbeddedServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield

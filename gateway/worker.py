"""The gateway as a worker: it answers on HTTP what others answer on the bus."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from gateway.access_tokens import AccessKeys, token_file, token_of
from gateway.address import bound_socket, url_file, url_of
from gateway.app import create_app
from gateway.backend import Backend
from gateway.event_streams import EventStreams
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.files.private import write_private
from mindbus.logs import logger


class UserInterface(Protocol):
    """A web app on top of the API."""

    def mount(self, app: FastAPI) -> None:
        """Answer wherever the API does not."""

    def start(self) -> None:
        """The bus is heard from now on."""

    async def stop(self) -> None:
        """It will not be heard any more."""


class GatewayWorker(Worker):
    """One more participant on the bus: everything that a browser or a program asks, it asks in turn."""

    name = "gateway"
    start_stage = 5

    def __init__(self, context: WorkerContext, screens: Callable[[Backend], UserInterface] | None = None) -> None:
        self._kit = context
        self.backend = Backend(context.bus, context.settings, context.clock)
        self._screens = screens(self.backend) if screens else None
        self.streams = EventStreams(context.settings.gateway_max_streams)
        self._server: WebServer | None = None
        self.url = ""

    async def start(self) -> None:
        """Bind, listen to the bus, serve."""
        settings = self._kit.settings
        token = token_of(settings)
        if token is not None and token.is_new:
            logger().info("gateway token made", file=str(token_file(settings)))
        listening = bound_socket(settings)
        self.url = url_of(listening)
        keys = AccessKeys(token.text if token else None, self._kit.clock)
        app = create_app(self.backend, keys, self.streams)
        self._server = WebServer(app, listening)
        await self.backend.start()
        if self._screens is not None:
            self._screens.mount(app)
            self._screens.start()
        await self._server.start()
        write_private(url_file(settings), self.url)
        logger().info("gateway serves", url=self.url, asks_for_token=token is not None)

    async def stop(self) -> None:
        """Serve no more; streams end first, their clients come back."""
        self.streams.close()
        if self._server is not None:
            await self._server.stop()
        if self._screens is not None:
            await self._screens.stop()
        await self.backend.stop()


_DRAIN_S = 3
_CONNECTIONS = 1000


class DidNotServe(Exception):
    """The web server has ended before it began; its log says why."""


class _Guest(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs this process."""
        yield


class WebServer:
    """Serves one app on one socket."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=_DRAIN_S,
        )
        self._server, self._listening = _Guest(config), listening
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when it serves. Raises DidNotServe."""
        self._serving = asyncio.create_task(self._server.serve([self._listening]), name="web server")
        while not self._server.started:
            if self._serving.done():
                raise DidNotServe(DidNotServe.__doc__)
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Finish what is under way, within reason."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving

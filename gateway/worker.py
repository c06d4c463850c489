"""The gateway as a worker: it answers on HTTP what others answer on the bus."""

from collections.abc import Callable
from typing import Protocol

from fastapi import FastAPI

from gateway.address import bound_socket, url_file, url_of
from gateway.app import create_app
from gateway.backend import Backend
from gateway.keys import Keys
from gateway.server import WebServer
from gateway.streams import Streams
from gateway.tokens import token_file, token_of
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.files.private import write_private
from mindbus.logs import logger


class Screens(Protocol):
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

    def __init__(self, context: WorkerContext, screens: Callable[[Backend], Screens] | None = None) -> None:
        self._kit = context
        self.backend = Backend(context.bus, context.settings, context.clock)
        self._screens = screens(self.backend) if screens else None
        self.streams = Streams(context.settings.gateway_max_streams)
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
        keys = Keys(token.text if token else None, self._kit.clock)
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

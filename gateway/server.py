"""The web server, within the loop of the worker that it serves for."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

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

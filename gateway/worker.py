"""The gateway as a worker, with its web server in the worker's event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.routing import Route
from starlette.types import ASGIApp

from config.settings import FleetSettings
from gateway.access_control import A2A, AGENT_CARD, MCP
from gateway.access_tokens import AccessKeys, token_file, token_of
from gateway.address import bound_socket, url_of
from gateway.api.webhooks import EVENTS, EventDelivery
from gateway.app import create_app
from gateway.backend import Backend
from gateway.event_streams import EventStreams
from gateway.lazy_app import LazyApp
from gateway.webhooks.delivery import Deliveries, open_sender
from gateway.webhooks.store import Kind, webhooks_of
from mindbus.accounts import accounts_of
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.errors import MindBusError
from mindbus.files.disk import write_private
from mindbus.logs import logger
from mindbus.run_dir import gateway_url_file
from mindbus.tasks import running

_DRAIN_S = 3
_MAX_CONNECTIONS = 1000
_MOST_NAMED = 3


class ServerNotStarted(MindBusError):
    """The web server ended before it served; its log says why."""


ASSETS = "/assets"


class GatewayWorker(Worker):
    """A worker without handlers: it turns HTTP requests into requests on the bus."""

    name = "gateway"
    subscribes_to = ("#",)

    def __init__(self, context: WorkerContext, *, has_screens: bool = False) -> None:
        """With screens, they answer all paths that the API does not."""
        self._context, self._has_screens = context, has_screens
        self.backend = Backend(context.bus, context.settings_as(FleetSettings), context.clock)
        self.streams = EventStreams(context.settings_as(FleetSettings).gateway_max_streams)
        self.webhooks = webhooks_of(context.settings_as(FleetSettings))
        self._running = AsyncExitStack()
        self.url = ""

    async def start(self) -> None:
        settings = self._context.settings_as(FleetSettings)
        token = token_of(settings)
        if token is not None and token.is_new:
            logger().info("gateway token made", file=str(token_file(settings)))
        bound = bound_socket(settings)
        self.url = url_of(bound, "https" if settings.gateway_tls_cert else "http")
        keys = AccessKeys(
            token.text if token else None, self._context.clock, accounts_of(settings), settings.metrics_token
        )
        app = create_app(self.backend, keys, self.streams)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.backend.running())
            mcp = LazyApp("gateway.mcp_app", "open_mcp", self.backend)
            app.router.routes.append(Route(MCP, mcp))
            stack.push_async_callback(mcp.close)
            await self._open_a2a(app, stack)
            sender = await stack.enter_async_context(open_sender(settings.gateway_webhook_hosts))
            deliver = EventDelivery(self.backend, sender).deliver
            events = Deliveries(EVENTS, self.backend, self.webhooks, deliver)
            await stack.enter_async_context(running(events.run(), "webhooks"))
            if self._has_screens:
                stack.push_async_callback(_mount_screens(app, self.backend).close)
            await stack.enter_async_context(_serving(app, bound, settings))
            self._running = stack.pop_all()
        write_private(gateway_url_file(settings), self.url)
        logger().info("gateway serves", url=self.url, asks_for_token=token is not None)

    async def _open_a2a(self, app: FastAPI, stack: AsyncExitStack) -> None:
        """A2A, opened at once where push notifications are still to be sent."""
        a2a = LazyApp("gateway.a2a.app", "open_a2a", self.backend)
        app.router.routes += [Route(AGENT_CARD, a2a), Route(A2A, a2a), Route(f"{A2A}/{{rest:path}}", a2a)]
        stack.push_async_callback(a2a.close)
        if self.webhooks.of("task"):
            await a2a.open()

    @property
    def health_note(self) -> str:
        failing = [each for kind in get_args(Kind) for each in self.webhooks.of(kind) if each.problem]
        return "; ".join(f"webhook to {urlsplit(each.url).hostname}: {each.problem}" for each in failing[:_MOST_NAMED])

    async def stop(self) -> None:
        """End streams first, so that their clients reconnect, then the server, the UI and the backend."""
        self.streams.close()
        await self._running.aclose()


def _mount_screens(app: FastAPI, backend: Backend) -> LazyApp:
    screens = LazyApp("gateway.ui.web_ui", "open_screens", backend)
    app.mount(ASSETS, StaticFiles(directory=Path(str(files("gateway.ui").joinpath("static")))), name="assets")
    app.add_api_route("/", _to_timeline, include_in_schema=False)
    app.mount("/", screens)
    return screens


async def _to_timeline() -> RedirectResponse:
    return RedirectResponse("/timeline")


def open_gateway(context: WorkerContext) -> GatewayWorker:
    return GatewayWorker(context, has_screens=True)


@asynccontextmanager
async def _serving(app: ASGIApp, bound: socket.socket, settings: FleetSettings) -> AsyncIterator[None]:
    """Uvicorn for one app on one bound socket; at the end open requests finish within the drain time."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        # Of others a header that names the client is a lie that would get around the limit of wrong tokens.
        proxy_headers=bool(settings.gateway_trusted_proxies),
        forwarded_allow_ips=settings.gateway_trusted_proxies,
        ssl_certfile=settings.gateway_tls_cert,
        ssl_keyfile=settings.gateway_tls_key_file,
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

"""The gateway as a worker, with its web server in the worker's event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from config.settings import FleetSettings
from gateway.access_tokens import token_of
from gateway.address import bound_socket, url_of
from gateway.lazy_app import LazyApp
from gateway.site import GatewaySite
from gateway.tenant_sites import TenantSites
from mindbus.bus.worker import WorkerContext
from mindbus.errors import MindBusError
from mindbus.logs import logger
from mindbus.tasks import running

_DRAIN_S = 3
_MAX_CONNECTIONS = 1000
# Longer than reverse proxies usually keep a connection that nobody uses (60 s): a request must not meet its end.
_IDLE_S = 75


class ServerNotStarted(MindBusError):
    """The web server ended before it served; its log says why."""


class GatewayWorker(GatewaySite):
    """The site of a fleet with its server, which serves the sites of the fleet's tenants as well."""

    def __init__(self, context: WorkerContext, *, has_screens: bool = False) -> None:
        super().__init__(context)
        self.screens = LazyApp("gateway.ui.web_ui", "open_screens") if has_screens else None
        self._serving = AsyncExitStack()
        self._tenants: TenantSites | None = None

    async def start(self) -> None:
        settings = self.settings
        bound = bound_socket(settings)
        self.url = url_of(bound, "https" if settings.gateway_tls_cert else "http")
        async with AsyncExitStack() as stack:
            if self.screens is not None:
                stack.push_async_callback(self.screens.close)
            await super().start()
            stack.push_async_callback(super().stop)
            self._tenants = tenants = TenantSites(self.app, settings, self.url, self.screens)
            stack.push_async_callback(tenants.close)
            await stack.enter_async_context(running(tenants.keep_open(), "tenants"))
            await stack.enter_async_context(_serving(tenants, bound, settings))
            self._serving = stack.pop_all()
        logger().info("gateway serves", url=self.url, asks_for_token=token_of(settings) is not None)

    @property
    def health_note(self) -> str:
        of_tenants = "" if self._tenants is None else self._tenants.trouble
        return "; ".join(filter(None, (super().health_note, of_tenants)))

    async def stop(self) -> None:
        """End streams first, so that their clients reconnect, then the server, the sites, the screens."""
        self.streams.close()
        await self._serving.aclose()


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
        timeout_keep_alive=_IDLE_S,
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

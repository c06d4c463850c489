"""The gateway as a worker, with its web server in the worker's event loop."""

from contextlib import AsyncExitStack

from gateway.access_tokens import token_of
from gateway.lazy_app import LazyApp
from gateway.site import GatewaySite
from gateway.tenant_sites import TenantSites
from gateway.web_server import bound_socket, serving, url_of
from mindbus.bus.worker import WorkerContext
from mindbus.logs import logger
from mindbus.tasks import running


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
            await stack.enter_async_context(serving(tenants, bound, settings))
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

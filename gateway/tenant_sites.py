"""The sites of tenants, which one gateway serves beside its own: told apart by host name or by the path's beginning."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bus_schema.replies import Code
from config.settings import FleetSettings
from gateway.access_control import A2A, AGENT_CARD, HEALTH, MCP, METRICS, OPENAI
from gateway.lazy_app import LazyApp
from gateway.problems import problem_response
from gateway.site import GatewaySite
from mindbus.bus.connection import open_transport
from mindbus.bus.worker import WorkerContext
from mindbus.errors import BusUnavailable, MindBusError
from mindbus.files.folder_addresses import PATH
from mindbus.health import HealthFolder
from mindbus.logs import logger
from mindbus.run_dir import fleet_runs, gateway_url_file
from mindbus.runtime.provision import Administrator
from mindbus.runtime.service import Service, build, provide
from mindbus.tasks import Supervised, end
from mindbus.tenants import folder_of, site_url, tenants_of, web_url

_LOOK_EVERY_S, _AGAIN_S = 1.0, 2.0
_OPEN_WITHIN_S, _CLOSE_WITHIN_S = 20.0, 10.0
_PREFIX = re.compile(r"/t/([a-z][a-z0-9-]{0,30})(?=/|$)")
# What programs ask for; screens are reached under the tenant's own host name, where cookies are its own.
_OF_PROGRAMS = ("/api/", MCP, f"{OPENAI}/", A2A, AGENT_CARD, f"{PATH}/", HEALTH, METRICS)
# Settings that do not fit are a ValueError of Pydantic's.
_EXPECTED = (MindBusError, OSError, ValueError)
_NOT_RUNNING = "it is not running; start it with `MINDBUS_TENANT={} mindbus up -d`"
_NOT_LET_IN = "RabbitMQ does not let the gateway into its virtual host: `mindbus tenants add` makes one"


class TenantSites:
    """An ASGI application that passes each request to the site that it is for; its host's is that of all others.

    A tenant is named by the first label of the host name, as acme in https://acme.mindbus.example.org and
    http://acme.localhost:8040, or by the beginning of the path, as in http://127.0.0.1:8040/t/acme/v1/models.
    """

    def __init__(self, own: ASGIApp, host: FleetSettings, url: str, screens: LazyApp | None) -> None:
        """`own` is the host's site, `url` where its gateway listens; the screens are shared."""
        self._own, self._host, self._url, self._screens = own, host, url, screens
        self._known: frozenset[str] = frozenset()
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._sites: dict[str, GatewaySite] = {}
        self._failed: dict[str, str] = {}

    @property
    def trouble(self) -> str:
        """Tenants that run and cannot be served, with the reason; empty where there are none."""
        return "; ".join(f"tenant {tenant} is not served: {reason}" for tenant, reason in sorted(self._failed.items()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app_for(scope) if scope["type"] in ("http", "websocket") else self._own
        await app(scope, receive, send)

    async def keep_open(self) -> None:
        """Open the sites of the tenants that run, close those of others, for ever."""
        await Supervised("tenants", self.look, _LOOK_EVERY_S).run(begins_at_once=True)

    async def close(self) -> None:
        """Close the sites of all tenants."""
        await end(*self._serving.values())

    async def look(self) -> None:
        """Begin to serve the tenants that run, end it for others."""
        named = filter(None, map(str.strip, self._host.gateway_tenants.split(",")))
        self._known = frozenset((*tenants_of(self._host.data_dir), *named))
        running = {tenant for tenant in self._known if self._runs(tenant)}
        for tenant in self._serving.keys() - running:
            await end(self._serving.pop(tenant))
            self._failed.pop(tenant, None)
        for tenant in running - self._serving.keys():
            # A task each: one that cannot be served holds up no other.
            serving = Supervised(f"tenant {tenant}", partial(self._serve, tenant), _AGAIN_S)
            self._serving[tenant] = serving.start()

    def _app_for(self, scope: Scope) -> ASGIApp:
        if found := _PREFIX.match(scope["path"]):
            return self._by_path(scope, found[1], scope["path"][found.end() :] or "/")
        label = _host_of(scope).partition(".")[0]
        return self._site(label) if label in self._known else self._own

    def _by_path(self, scope: Scope, tenant: str, path: str) -> ASGIApp:
        if tenant not in self._known:
            return problem_response(Code.NOT_FOUND, f"there is no tenant {tenant}")
        if not path.startswith(_OF_PROGRAMS):
            query = scope["query_string"].decode("latin-1")
            return RedirectResponse(f"{web_url(self._public_url, tenant)}{path}{'?' if query else ''}{query}")
        scope["path"], scope["raw_path"] = path, path.encode()
        return self._site(tenant)

    def _site(self, tenant: str) -> ASGIApp:
        if found := self._sites.get(tenant):
            return found.app
        reason = self._failed.get(tenant) or _NOT_RUNNING.format(tenant)
        return problem_response(Code.UNAVAILABLE, f"the tenant {tenant} is not served: {reason}")

    async def _serve(self, tenant: str) -> None:
        """Serve a tenant until its fleet is started anew."""
        try:
            async with open_site(self._settings_of(tenant), site_url(self._url, tenant), self._screens) as site:
                logger().info("tenant served", tenant=tenant, url=web_url(self._url, tenant))
                self._sites[tenant] = site
                self._failed.pop(tenant, None)
                await _started_anew(site.settings)
        except _EXPECTED as error:
            if self._failed.get(tenant) != str(error):
                logger().warning("tenant not served", tenant=tenant, reason=str(error))
            self._failed[tenant] = str(error)
        finally:
            self._sites.pop(tenant, None)

    def _runs(self, tenant: str) -> bool:
        """Whether its fleet runs, as far as is known here; on a broker elsewhere it is taken to."""
        return self._host.amqp_url is not None or fleet_runs(folder_of(self._host.data_dir, tenant))

    def _settings_of(self, tenant: str) -> FleetSettings:
        host = self._host.model_dump(exclude_unset=True)
        # Whoever may sign in to the host's site has no part in a tenant's.
        own = {"gateway_access": "token", "oidc_issuer": None, "gateway_public_url": self._public_url}
        return FleetSettings.model_validate({**host, **own, "tenant": tenant})

    @property
    def _public_url(self) -> str:
        return self._host.gateway_public_url or self._url


def _host_of(scope: Scope) -> str:
    """The host name that was asked for, without a port; empty where there is none."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    with suppress(ValueError):
        return urlsplit(f"//{host}").hostname or ""
    return ""


async def _started_anew(settings: FleetSettings) -> None:
    """Wait until the fleet of a tenant is started anew, which forgets the addresses of the one before."""
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        if not gateway_url_file(settings).exists():
            return


async def _start(service: Service, settings: FleetSettings) -> None:
    """Raises BusUnavailable, ManagementUnavailable."""
    try:
        async with asyncio.timeout(_OPEN_WITHIN_S):
            await provide([service], settings)
            await service.start()
    except TimeoutError as error:
        raise BusUnavailable(_NOT_LET_IN) from error


@asynccontextmanager
async def open_site(settings: FleetSettings, url: str, screens: LazyApp | None) -> AsyncIterator[GatewaySite]:
    """The site of a tenant, with a connection to its bus.

    Raises BusUnavailable, ManagementUnavailable, NoBroker.
    """
    if (admin := Administrator.of_private_node(settings)) is not None:
        await admin.add_users([GatewaySite.name], settings)
    transport, health = open_transport(settings, GatewaySite.name), HealthFolder(settings)
    made: list[GatewaySite] = []

    def make(context: WorkerContext) -> GatewaySite:
        made.append(GatewaySite(context, url, screens))
        return made[0]

    try:
        service = build(make, GatewaySite.name, settings, transport, health.report)
        await _start(service, settings)
        try:
            await service.wait_ready()
            yield made[0]
        finally:
            # A broker that is gone is not waited for.
            with suppress(TimeoutError, MindBusError):
                async with asyncio.timeout(_CLOSE_WITHIN_S):
                    await service.drain()
    finally:
        await transport.close()
        health.forget(GatewaySite.name)

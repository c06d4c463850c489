"""The site of one fleet: its HTTP API, MCP, A2A, webhooks and screens, without a server of its own."""

import asyncio
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from config.settings import FleetSettings
from gateway.access_control import A2A, AGENT_CARD, MCP
from gateway.access_tokens import AccessKeys, token_file, token_of
from gateway.activity import ActivityMonitor
from gateway.api.webhooks import EVENTS, EventDelivery
from gateway.app import create_app
from gateway.backend import Backend
from gateway.event_streams import EventStreams
from gateway.lazy_app import LazyApp
from gateway.webhooks.delivery import Deliveries, open_sender
from gateway.webhooks.store import Kind, webhooks_of
from mindbus.accounts import accounts_of
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.files.disk import write_private
from mindbus.logs import logger
from mindbus.run_dir import gateway_url_file
from mindbus.tasks import Supervised, end, kept_running

ASSETS = "/assets"
_MOST_NAMED = 3


class GatewaySite(Worker):
    """A worker without handlers: it turns HTTP requests into requests on the bus. `app` is what is to be served."""

    name = "gateway"
    subscribes_to = ("#",)
    app: FastAPI

    def __init__(self, context: WorkerContext, url: str = "", screens: LazyApp | None = None) -> None:
        """`url` is where it is reached from this machine; with screens, they answer all paths that the API does not."""
        self.settings = context.settings_as(FleetSettings)
        self._clock, self.url, self.screens = context.clock, url, screens
        self.backend = Backend(context.bus, self.settings, context.clock)
        self.streams = EventStreams(self.settings.gateway_max_streams)
        self.webhooks = webhooks_of(self.settings)
        self._running = AsyncExitStack()

    async def start(self) -> None:
        settings, token = self.settings, token_of(self.settings)
        if token is not None and token.is_new:
            logger().info("gateway token made", file=str(token_file(settings)))
        keys = AccessKeys(token.text if token else None, self._clock, accounts_of(settings), settings.metrics_token)
        self.app = create_app(self.backend, keys, self.streams)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.backend.running())
            mcp = LazyApp("gateway.mcp_app", "open_mcp", self.backend)
            self.app.router.routes.append(Route(MCP, mcp))
            stack.push_async_callback(mcp.close)
            await self._open_a2a(stack)
            sender = await stack.enter_async_context(open_sender(settings.gateway_webhook_hosts))
            deliver = EventDelivery(self.backend, sender).deliver
            events = Deliveries(EVENTS, self.backend, self.webhooks, deliver)
            await stack.enter_async_context(kept_running(events.run, "webhooks"))
            if self.screens is not None:
                stack.push_async_callback(self._mount_screens(self.screens).close)
            self._running = stack.pop_all()
        write_private(gateway_url_file(settings), self.url)

    @property
    def health_note(self) -> str:
        failing = [each for kind in get_args(Kind) for each in self.webhooks.of(kind) if each.problem]
        return "; ".join(f"webhook to {urlsplit(each.url).hostname}: {each.problem}" for each in failing[:_MOST_NAMED])

    async def stop(self) -> None:
        """End streams first, so that their clients reconnect, then all that was opened."""
        self.streams.close()
        await self._running.aclose()

    async def _open_a2a(self, stack: AsyncExitStack) -> None:
        """A2A, opened at once where push notifications are still to be sent."""
        a2a = LazyApp("gateway.a2a.app", "open_a2a", self.backend)
        self.app.router.routes += [Route(AGENT_CARD, a2a), Route(A2A, a2a), Route(f"{A2A}/{{rest:path}}", a2a)]
        stack.push_async_callback(a2a.close)
        if self.webhooks.of("task"):
            await a2a.open()

    def _mount_screens(self, screens: LazyApp) -> "SiteScreens":
        of_site = SiteScreens(screens, self.backend)
        folder = Path(str(files("gateway.ui").joinpath("static")))
        self.app.mount(ASSETS, StaticFiles(directory=folder), name="assets")
        self.app.add_api_route("/", _to_timeline, include_in_schema=False)
        self.app.mount("/", of_site)
        return of_site


class SiteScreens:
    """The screens, which all sites of a process share, as those of one site: they are told whose they are."""

    def __init__(self, screens: LazyApp, backend: Backend) -> None:
        self._screens, self._backend = screens, backend
        self._activity = ActivityMonitor(backend)
        self._sampling: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._sampling is None:
            self._sampling = Supervised("gateway activity", self._activity.run, 0, lasts=True).start()
        scope.setdefault("state", {}).update(backend=self._backend, activity=self._activity)
        await self._screens(scope, receive, send)

    async def close(self) -> None:
        """End the sampling; the screens are others' as well."""
        if self._sampling is not None:
            await end(self._sampling)


async def _to_timeline() -> RedirectResponse:
    return RedirectResponse("/timeline")

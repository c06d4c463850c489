"""Mounts the screens on the gateway's web application."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from nicegui import Client, background_tasks, ui
from nicegui import app as nicegui_app
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from bus_schema.replies import Code
from gateway.problems import problem_response
from gateway.site import ASSETS
from gateway.ui.asset_cache import AssetCache
from gateway.ui.chat.screen import ChatScreen
from gateway.ui.components import refill, text
from gateway.ui.episodes.screen import EpisodesScreen
from gateway.ui.fleet.screen import FleetScreen
from gateway.ui.memory.screen import MemoryScreen
from gateway.ui.page_session import PageSession
from gateway.ui.runs.artifact_screen import ArtifactScreen
from gateway.ui.runs.list_screen import RunListScreen
from gateway.ui.runs.run_screen import RunScreen
from gateway.ui.sections import draw_failure, draw_not_found
from gateway.ui.sim.screen import SimScreen
from gateway.ui.tasks.screen import TasksScreen
from gateway.ui.timeline.events import TimelineEvents
from gateway.ui.timeline.screen import TimelineScreen

Draw = Callable[[PageSession], Awaitable[None]]

_RECONNECT_WITHIN_S = 30.0
# Pages are compressed for every browser that comes: level 9 takes three times as long, for a twentieth of their size.
_GZIP_LEVEL = 4


class WebUI:
    """The screens, which all sites of a gateway share: each request says whose it is."""

    def mount(self, app: FastAPI) -> None:
        """Serve the screens at `/`; existing routes of the app stay."""
        for name, draw in _SCREENS.items():
            self._page(name, draw)

        @ui.page("/runs/{run_id}")
        async def run_page(request: Request, run_id: str) -> None:
            await self._show("run", request, lambda session: RunScreen.draw(session, run_id))

        @ui.page("/artifacts/{artifact_id}")
        async def artifact_page(request: Request, artifact_id: str) -> None:
            await self._show("artifact", request, lambda session: ArtifactScreen.draw(session, artifact_id))

        nicegui_app.exception_handler(404)(self._not_found)
        nicegui_app.exception_handler(Exception)(self._failed)
        ui.run_with(
            app,
            title="MindBus",
            favicon=_FAVICON,
            dark=None,
            viewport="width=device-width, initial-scale=1, viewport-fit=cover",
            tailwind=False,
            reconnect_timeout=_RECONNECT_WITHIN_S,
            show_welcome_message=False,
            binding_refresh_interval=None,
            gzip_middleware_factory=_compressed,
        )

    def _page(self, name: str, draw: Draw) -> None:
        @ui.page(f"/{name}")
        async def page(request: Request) -> None:
            await self._show(name, request, draw)

    async def _not_found(self, request: Request, error: Exception) -> Response:
        """The page of an address that leads nowhere; a path of a script or a picture gets a plain answer."""
        if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
            return problem_response(Code.NOT_FOUND, f"there is no {request.url.path}")

        with Client(ui.page(""), request=request) as client:
            session = self._begin("missing", request)

            async def finish() -> None:
                with client:
                    await session.open()
                    with session.main:
                        draw_not_found(session.i18n, session.palette.open)
                    session.finish()

            background_tasks.create(finish(), name="page not found")
            return client.build_response(request, 404)

    async def _failed(self, request: Request, _error: Exception) -> Response:
        """The page of a screen that failed before it was sent."""
        with Client(ui.page(""), request=request) as client:
            session = self._begin("failed", request)
            with refill(session.main):
                draw_failure(session.i18n)
            return client.build_response(request, 500)

    def _begin(self, name: str, request: Request) -> PageSession:
        """The layout of a page, to be sent at once."""
        ui.add_head_html(_HEAD + (_CHARTS if name in _WITH_CHARTS else ""))
        state = request.state
        return PageSession(state.backend.of(state.account), state.activity, name, request)

    async def _show(self, name: str, request: Request, draw: Draw) -> None:
        session = self._begin(name, request)
        backend = session.backend
        if name == "timeline":
            session.begin(TimelineEvents.begin(session))
        await session.open()
        with session.main:
            if name in _FOR_OPERATORS and not backend.account.is_operator:
                text(session.i18n("for_operators"), "mb-meta", "p")
            else:
                await draw(session)
        session.finish()


def _compressed(app: ASGIApp) -> GZipMiddleware:
    return GZipMiddleware(app, compresslevel=_GZIP_LEVEL)


_SCREENS: dict[str, Draw] = {
    "timeline": TimelineScreen.draw,
    "chat": ChatScreen.draw,
    "tasks": TasksScreen.draw,
    "runs": RunListScreen.draw,
    "fleet": FleetScreen.draw,
    "memory": MemoryScreen.draw,
    "episodes": EpisodesScreen.draw,
    "sim": SimScreen.draw,
}
_HEAD = "".join(
    [f'<script src="{ASSETS}/{name}.js"></script>' for name in ("mindbus", "timeline", "episodes")]
    + [f'<link rel="stylesheet" href="{ASSETS}/{name}.css">' for name in ("mindbus", "screens")]
)
# Longer than a page takes to be deleted.
_FREED_AFTER_S = 1.0
_FOR_OPERATORS = {"fleet", "sim"}
_WITH_CHARTS = {"timeline", "episodes"}
# The charts' library is a megabyte: it is loaded while the screen is drawn, not after.
_CHARTS = '<script>import("nicegui-echart")</script>'
_FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#fff" stroke-width="2" '
    'stroke-linecap="round"><rect width="24" height="24" rx="6" fill="#5263e6" stroke="none"/>'
    '<path d="M5 9h7M11 15h8M5 15h1.5a2.5 2.5 0 0 0 2.5-2.5A3.5 3.5 0 0 1 12.5 9H15M17 9h2"/></svg>'
)


class ClosedPages:
    """Frees what closed pages leave.

    The elements of a page refer to one another: a megabyte or two that waits for the collector of cycles, which
    processes of workers start rarely.
    """

    def __init__(self) -> None:
        self._is_due = False

    def add(self) -> None:
        """Free that of a page, in a moment: others may close meanwhile."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_FREED_AFTER_S, self._free)

    def _free(self) -> None:
        self._is_due = False
        gc.collect()


@asynccontextmanager
async def open_screens() -> AsyncIterator[ASGIApp]:
    """The screens as an application."""
    app = FastAPI(openapi_url=None)
    WebUI().mount(app)
    nicegui_app.on_delete(ClosedPages().add)
    # Nobody has to look again and again through what has just been imported.
    gc.collect()
    gc.freeze()
    async with app.router.lifespan_context(app):
        yield AssetCache(app)

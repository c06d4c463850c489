"""One open page: client information, keyboard, timers, subscriptions, address and notices."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import Request
from nicegui import background_tasks, ui
from nicegui.client import ClientConnectionTimeout

from bus_schema.envelope import Envelope
from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.access_control import COOKIE
from gateway.activity import ActivityMonitor
from gateway.backend import Backend
from gateway.event_feed import Listener, MissedEvents
from gateway.timeline_tail import sequence_of
from gateway.ui.command_palette import CommandPalette
from gateway.ui.components import attributes, box, button, refill, text, toggle, update
from gateway.ui.i18n import Localizer, language_of
from gateway.ui.layout import Layout, skeleton
from gateway.ui.sections import EXPECTED_ERRORS, draw_failure, error_text
from gateway.ui.svg import icon
from mindbus.logs import logger

T = TypeVar("T")

_LEARN_WITHIN_S = 5.0
_LOOK_AT_ACCOUNT_EVERY_S = 2.0
_UTC = ZoneInfo("UTC")


@dataclass(frozen=True)
class ClientInfo:
    """Language, platform and window of the browser."""

    i18n: Localizer
    is_phone: bool = False
    width: int = 1280
    height: int = 800
    find_keys: str = "Ctrl K"


def localizer_of(request: Request) -> Localizer:
    """Language and time zone as far as the request tells them."""
    language = language_of(request.cookies.get("mb_lang"), request.headers.get("accept-language", ""))
    return Localizer(language, _zone(request.cookies.get("mb_zone", "")))


async def client_info(i18n: Localizer) -> ClientInfo:
    """Facts that only the connected browser knows."""
    await ui.context.client.connected(timeout=_LEARN_WITHIN_S)
    facts: dict[str, Any] = await ui.run_javascript("return mbFacts()", timeout=_LEARN_WITHIN_S)
    return ClientInfo(
        i18n=Localizer(i18n.language, _zone(str(facts["zone"]))),
        is_phone=bool(facts["phone"]),
        width=int(facts["width"]),
        height=int(facts["height"]),
        find_keys="⌘K" if facts["mac"] else "Ctrl K",
    )


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name.replace("%2F", "/")) if name else _UTC
    except (ZoneInfoNotFoundError, ValueError):
        return _UTC


# A screen that the rail does not name belongs to one that it does.
_PLACES = {"run": "runs", "artifact": "runs", "episodes": "memory"}


class PageSession:
    """One open page; its timers and subscriptions end with it."""

    def __init__(self, backend: Backend, activity: ActivityMonitor, name: str, request: Request) -> None:
        self.backend, self.activity, self.name = backend, activity, name
        self.i18n = localizer_of(request)
        self.query = {key: value for key, value in request.query_params.items() if value}
        self.client = ClientInfo(self.i18n)
        self._on_key: dict[str, Callable[[], Any]] = {}
        self.row: str | None = None
        self._is_drawn = False
        self._timers: list[ui.timer] = []
        self._events: Listener[Envelope] | None = None
        # What `begin` reads.
        self.ahead: asyncio.Task[Any]
        self._followed: set[tuple[object, ...]] = set()
        self._client = ui.context.client
        self._client.on_exception(self._fail)
        place = _PLACES.get(name, name)
        ui.page_title(" · ".join(filter(None, (self.i18n(f"nav.{place}"), backend.settings.tenant, "MindBus"))))
        self.layout = Layout(self.i18n, place, can_leave=COOKIE in request.cookies)
        self.main, self.controls = self.layout.main, self.layout.controls
        with self.main:
            self._banner = attributes(box("mb-hidden"), role="status")
            self._skeleton = skeleton()

    async def open(self) -> None:
        """Wait for the browser and its facts, then be ready to draw."""
        reading = asyncio.create_task(self.backend.names.refresh(), name="names")
        self.client = await client_info(self.i18n)
        await reading
        self.i18n = self.layout.i18n = self.client.i18n
        self.layout.find_keys.set_text(self.client.find_keys)
        self.palette = CommandPalette(self.i18n, self.backend)
        self.on_keys({"palette": self.palette.open, "?": self.palette.show_keys})
        ui.on("mb_key", self._press)
        ui.on("mb_visible", lambda event: self._set_visible(is_visible=bool(event.args["visible"])))
        self._skeleton.delete()
        self.every(1.0, self._show_health)
        # Of a hidden page, too: it would go on being told of events.
        ui.timer(_LOOK_AT_ACCOUNT_EVERY_S, lambda: None if self.backend.is_current() else self.end())

    def finish(self) -> None:
        """Mark the page as drawn, for tests."""
        self._is_drawn = True
        update(self.main, data_drawn=self.name)

    def end(self) -> None:
        """Leave the page, whose account has been revoked; it takes no more."""
        self._client.delete()

    def _fail(self, error: Exception) -> None:
        """Tell of an error that nobody had foreseen: in the place of a screen not drawn yet, else as a notice."""
        if isinstance(error, ClientConnectionTimeout):
            # As of a crawler, or of curl.
            logger().info("page opened by no browser", screen=self.name)
        else:
            logger().error("screen failed", screen=self.name, error=type(error).__name__, reason=str(error))
        if self._is_drawn:
            self.say(self.i18n("error.handler"), is_error=True)
            return
        with refill(self.main):
            draw_failure(self.i18n)

    def subtitle(self, content: str) -> None:
        self.layout.subtitle.set_text(content)

    def on_keys(self, work: Mapping[str, Callable[[], Any]]) -> None:
        """Call the work of a key when it is pressed; `row` is the focused row at that time."""
        self._on_key |= work

    def every(self, seconds: float, work: Callable[[], Any]) -> None:
        """Call `work` repeatedly while the page is visible."""

        async def attempt() -> None:
            try:
                await _finish(work())
            except EXPECTED_ERRORS as error:
                logger().warning("screen not refreshed", screen=self.name, reason=str(error))

        self._timers.append(ui.timer(seconds, attempt))

    def begin(self, reading: Coroutine[Any, Any, object]) -> None:
        """Read what the screen will need, while the browser loads its scripts."""
        self.ahead = background_tasks.create(reading, name=f"read {self.name}")

    def listen(self) -> Listener[Envelope]:
        """The events since this was first called."""
        if self._events is None:
            self._events = self.enter(self.backend.feed.listen())
        return self._events

    def receive(self, seconds: float, take: Callable[[list[Envelope], bool], Any]) -> None:
        """Call `take` with new events, and whether some were missed, at most once per interval."""
        listener = self.listen()

        def take_waiting() -> Any:
            items = listener.take()
            events = [item for item in items if not isinstance(item, MissedEvents)]
            return take(events, len(events) < len(items)) if items else None

        self.every(seconds, take_waiting)

    async def read_timeline(self, query: GetTimeline, max_pages: int) -> tuple[list[TimelineEvent], bool]:
        """Recorded events, and whether these are all. Those recorded after the last are heard, some of them twice.

        The feed has an event before the tracker has recorded it: one that came just before the page listened is in
        neither what is read here nor in what is heard from the feed.
        """
        events, is_all = await self.backend.tail.read(query, max_pages)
        key = (query.user_id, query.trace_id, query.topics)
        if key not in self._followed:
            start = str(sequence_of(events[-1]) if events else 0)
            following = background_tasks.create(self._follow(query.model_copy(update={"cursor": start})), name="follow")
            self._client.on_delete(following.cancel)
            self._followed.add(key)
        return events, is_all

    async def _follow(self, query: GetTimeline) -> None:
        async with aclosing(self.backend.tail.follow(query)) as recorded:
            async for event in recorded:
                self.listen().put(event.envelope)

    def enter(self, context: AbstractContextManager[T]) -> T:
        """Enter the context; it is left when the page is closed."""
        value = context.__enter__()
        self._client.on_delete(lambda: context.__exit__(None, None, None))
        return value

    def remember(self, **state: str | None) -> None:
        """Keep state in the address, for reloads and links; None removes it."""
        for key, value in state.items():
            if value:
                self.query[key] = value
            else:
                self.query.pop(key, None)
        ui.run_javascript(f"mbWhere({json.dumps(urlencode(self.query))})")

    def say(self, message: str, *, is_error: bool = False) -> None:
        """A notice that disappears by itself, an error later than others."""
        ui.run_javascript(f"mbSay({json.dumps(message)}, {json.dumps(is_error)})")

    async def attempt(self, work: Coroutine[Any, Any, object], done: str = "") -> bool:
        """Run the work and show its error or `done`; True if it succeeded."""
        try:
            await work
        except EXPECTED_ERRORS as error:
            self.say(error_text(self.i18n, error), is_error=True)
            return False
        if done:
            self.say(done)
        return True

    def _show_health(self) -> None:
        health = self.activity.health
        self.layout.show_health(health)
        is_lost = health.sentence == "health.lost"
        if is_lost != ("mb-hidden" in self._banner.classes):
            return
        self._banner.clear()
        self._banner.classes(replace="mb-banner" if is_lost else "mb-hidden")
        # One cause, one banner: sections that the bus fails say nothing of their own.
        for name in ("mb-dimmed", "mb-bus-lost"):
            toggle(self.main, name, is_on=is_lost)
        if is_lost:
            with self._banner:
                icon("alert")
                with box("mb-stack mb-grow"):
                    since = self.i18n.time(health.lost_at) if health.lost_at else ""
                    text(self.i18n("lost.title", time=since), "mb-medium")
                    text(self.i18n("lost.safe"), "mb-meta")
                button(self.i18n("retry"), ui.navigate.reload, "", "replay")

    async def _press(self, event: Any) -> None:
        work = self._on_key.get(str(event.args.get("key")))
        if work is not None:
            self.row = event.args.get("row")
            await _finish(work())

    def _set_visible(self, *, is_visible: bool) -> None:
        for timer in self._timers:
            timer.activate() if is_visible else timer.deactivate()


async def _finish(result: object) -> None:
    if isinstance(result, Awaitable):
        await result

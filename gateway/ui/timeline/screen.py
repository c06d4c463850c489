"""The timeline screen: events on the bus by service."""

from datetime import datetime
from functools import partial
from typing import Any

from nicegui import ui

from bus_schema.envelope import Envelope
from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.ui.components import SegmentedControl, anchor, attributes, box, icon_button, show_if
from gateway.ui.dialogs import ask_for_range
from gateway.ui.page_session import PageSession
from gateway.ui.runs.run_screen import recorded_link
from gateway.ui.sections import EmptyState, LatestReading, ScreenSection
from gateway.ui.timeline.chart import ShownWindow, TimelineView
from gateway.ui.timeline.event_drawer import EventDrawer, causation_roots, chain_of
from gateway.ui.timeline.events import TimelineEvents
from gateway.ui.timeline.filters import LiveToggle
from gateway.ui.timeline.marks import EventMark
from gateway.ui.timeline.ranges import RANGES

_COMMAND = "mindbus sim start --speed 60"


class TimelineScreen:
    """Live mode follows the right edge; panning, zooming or selecting pauses it."""

    def __init__(self, session: PageSession, events: TimelineEvents) -> None:
        self.session, self.events, self.filters, self.range = session, events, events.filters, events.range
        self._links: list[tuple[str, str]] = []
        self._choices = LatestReading()
        self.chain: list[str] = []
        self._controls()
        with box("mb-timeline"):
            with box("mb-timeline-left"):
                with box("mb-filters") as bar:
                    self.filters.draw(bar, self.show_topics)
                place = box("mb-timeline-place mb-scroll")
                self.part = ScreenSection(session.i18n, place)
                self.empty_state = EmptyState(session.i18n, "timeline", _COMMAND, self._empty_buttons, "timeline.empty")
            drawer = attributes(box("mb-drawer mb-sheet mb-hidden", "aside"))
            self.drawer = EventDrawer(session.i18n, drawer, self.choose)
        self.view = TimelineView(session, self.filters, place, self.choose, self.see)

    @classmethod
    async def draw(cls, session: PageSession) -> None:
        events: TimelineEvents = await session.ahead
        screen = cls(session, events)
        session.receive(0.25, screen.receive)
        session.every(1.0, screen.tick)
        screen.listen_to_keys()
        ui.on("mb_mark", lambda event: screen.choose(event.args["id"]))
        await screen.part.attempt(screen.fill if events.is_read else screen.load)
        if event_id := session.query.get("event"):
            await screen.choose(event_id)
            screen.view.centre(screen.events, event_id, screen.chain)

    def listen_to_keys(self) -> None:
        zooms = {key: partial(self.zoom, factor) for key, factor in (("+", 0.5), ("=", 0.5), ("-", 2), ("0", 0))}
        steps = {"[": partial(self.drawer.step, -1), "]": partial(self.drawer.step, 1)}
        self.session.on_keys({"l": self.toggle_live, "t": self.toggle_table, "f": self.follow_trace})
        self.session.on_keys({"Escape": partial(self.choose, None), **steps, **zooms})

    async def load(self) -> None:
        await self.events.read()
        await self.fill()

    async def fill(self) -> None:
        if not self.events.newest.marks:
            has_earlier = (await self.session.backend.recorded(GetTimeline(limit=1))).items
            self.empty_state.explain("timeline.quiet" if has_earlier else "timeline.empty")
        self.redraw()
        self.view.watch()
        if await self.events.read_failures():
            self.redraw()

    async def show_topics(self) -> None:
        """Draw the events of the shown topics, of which some may have to be read."""
        await self.part.attempt(self.events.read_topics)
        self.redraw()

    def receive(self, envelopes: list[Envelope], has_missed: bool) -> Any:
        if self.range.until is not None:
            # What happens now is not in a range that is over.
            return None
        if has_missed:
            return self.part.attempt(self.load)
        fresh = self.events.hear(event for event in map(TimelineEvent.of, envelopes) if self._fits(event))
        if fresh and self.live.is_on:
            self._add(fresh)
        elif fresh:
            self.live.keep(fresh)
        return None

    def tick(self) -> None:
        if self.live.is_on and self.view.chart is not None:
            self.view.chart.move()
        self.events.forget()

    async def choose(self, event_id: str | None) -> None:
        """Open an event, or close what is open; of several at once the last."""
        is_latest = self._choices.begin()
        mark = await self.events.find(event_id) if event_id else None
        related = await self.events.related(mark.event) if mark else []
        if not is_latest():
            return
        chain: list[TimelineEvent] = []
        self._links = []
        if mark is None:
            self.drawer.close()
        else:
            if self.live.is_on:
                self.toggle_live()
            roots = causation_roots(mark.event, related)
            chain, self._links = chain_of(roots, mark.event.event_id)
            self.drawer.show(mark, [root for root in roots if root.leads_to(mark.event.event_id)])
        self.session.remember(event=self.drawer.selected)
        self.chain = [event.event_id for event in chain]
        self.view.select(self.events, self.filters, self.drawer.selected, self.chain, self._links)

    async def see(self, window: ShownWindow) -> None:
        """Go on from what the chart shows now: read what is missing of it."""
        self.session.remember(zoom=window.zoom)
        if self.live.is_on and not window.is_at_edge:
            self.toggle_live()
        await self.part.attempt(partial(self._look, window))

    async def _look(self, window: ShownWindow) -> None:
        chart = self.view.chart
        if not await self.events.look(window.since, window.until) or chart is None:
            return
        if chart.known_lanes == self.events.lanes():
            chart.show_window(self.events)
        else:
            self.redraw()

    def zoom(self, factor: float) -> None:
        if self.view.chart is not None:
            self.view.chart.zoom(factor)

    def toggle_live(self) -> None:
        waited = self.live.toggle()
        if self.live.is_on:
            self._add(waited)

    def toggle_table(self) -> None:
        if not self.session.client.is_phone:
            self.view.turn()
            self.redraw()

    async def follow_trace(self) -> None:
        mark = await self.events.find(self.drawer.selected) if self.drawer.selected else None
        if mark is not None and mark.event.trace_id:
            self.filters.go(trace=mark.event.trace_id, event=mark.event.event_id)

    def redraw(self) -> None:
        self.empty_state.show(is_empty=not self.events.newest.marks)
        self.view.show(self.events, self.filters, self.drawer.selected, self._links)
        self._count()

    def _empty_buttons(self) -> None:
        anchor("/chat?new=1", self.session.i18n("chat.new"), "mb-btn mb-primary")
        anchor("/sim", self.session.i18n("sim.start"), "mb-btn")
        anchor("/runs?new=1", self.session.i18n("palette.start_run"), "mb-btn")
        recorded_link(self.session.i18n)

    def _fits(self, event: TimelineEvent) -> bool:
        return self.filters.user in (None, event.user_id) and self.filters.trace in (None, event.trace_id)

    def _add(self, fresh: list[EventMark]) -> None:
        if self.view.add(self.events, fresh):
            self._count()
        else:
            self.redraw()

    def _count(self) -> None:
        counts = self.events.counts.by_topic()
        self.filters.count(counts)
        shown = sum(number for topic, number in counts.items() if topic not in self.filters.hidden)
        self.session.subtitle(self.session.i18n.count("timeline.events", shown))

    def _controls(self) -> None:
        i18n = self.session.i18n
        with self.session.controls:
            with box("mb-line-x mb-not-phone"):
                SegmentedControl([(key, i18n(f"range.{key}")) for key in RANGES], self.range.key, self._choose_range)
                classes = "mb-framed" + ("" if self.range.key else " mb-on")
                icon_button("clock", i18n("range.custom"), self._ask_for_range, classes)
            icon_button("table", i18n("timeline.as_table"), self.toggle_table, "mb-not-phone")
            self.live = LiveToggle(self.session, self.toggle_live)
            show_if(self.live.element, self.range.until is None)

    def _choose_range(self, chosen: str) -> None:
        self._go(range=chosen)

    def _ask_for_range(self) -> None:
        def go(since: datetime, until: datetime) -> None:
            self._go(**{"from": since.isoformat(), "to": until.isoformat()})

        ask_for_range(self.session.i18n, self.range.start, self.range.end, go)

    def _go(self, **shown: str) -> None:
        anew = {"range": None, "from": None, "to": None, "event": None, "zoom": None}
        self.session.remember(**(anew | shown))
        ui.run_javascript("location.reload()")

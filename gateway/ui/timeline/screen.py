"""Timeline: every event on the bus, by the agent that told it."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from nicegui import ui

from bus_schema.envelope import Envelope
from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.ui.frame import Frame
from gateway.ui.icons import icon
from gateway.ui.parts import Segments, anchor, attributes, box, copy_button, icon_button, show_if, text
from gateway.ui.timeline.causation import chain_of, story_of
from gateway.ui.timeline.chart import Chart
from gateway.ui.timeline.drawer import Drawer
from gateway.ui.timeline.filters import Filters
from gateway.ui.timeline.listing import Listing
from gateway.ui.timeline.marks import Mark, Reading
from gateway.ui.timeline.reach import MOST_PAGES, events_around, events_since
from gateway.ui.trouble import Part

RANGES = {"5m": 300, "15m": 900, "1h": 3600, "6h": 21600, "24h": 86400}
_USUAL = "15m"
_MOST_WAITING = 5000
_KEPT_BEYOND = timedelta(minutes=1)


class TimelineScreen:
    """Live follows the right edge; whoever pans, selects or reads pauses it."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        wanted = frame.query.get("range", "")
        self.range = wanted if wanted in RANGES else _USUAL
        self.is_live = frame.query.get("live") != "0"
        self.reading = Reading()
        self._waiting: list[Mark] = []
        self._links: list[tuple[str, str]] = []
        self._controls()
        is_phone = frame.viewer.is_phone
        self.is_table = is_phone or frame.query.get("view") == "table"
        with box("mb-timeline"):
            with box("mb-timeline-left"):
                with box("mb-filters") as bar:
                    self.filters = Filters(frame, bar, self.redraw)
                self.place = box("mb-timeline-place mb-scroll")
                self.part = Part(frame.words, self.place)
                self._empty = self._nothing()
            drawer = attributes(box("mb-drawer mb-sheet mb-hidden", "aside"))
            self.drawer = Drawer(frame.words, drawer, self.choose)
        self.chart: Chart | None = None
        self.listing: Listing | None = None
        self._draw_view()

    @classmethod
    async def draw(cls, frame: Frame) -> None:
        """Show it, then keep it up to date."""
        screen = cls(frame)
        frame.hear(0.25, screen.hear)
        frame.every(1.0, screen.tick)
        frame.on_key("l", lambda _row: screen.toggle_live())
        frame.on_key("t", lambda _row: screen.toggle_table())
        frame.on_key("f", lambda _row: screen.follow_trace())
        frame.on_key("[", lambda _row: screen.drawer.step(-1))
        frame.on_key("]", lambda _row: screen.drawer.step(1))
        frame.on_key("Escape", lambda _row: screen.choose(None))
        for key, factor in (("+", 0.5), ("=", 0.5), ("-", 2), ("0", 0)):
            frame.on_key(key, partial(screen.zoom, factor))
        ui.on("mb_mark", lambda event: screen.choose(event.args["id"]))
        await screen.load()
        wanted = frame.query.get("event")
        if wanted:
            await screen.choose(wanted)

    @property
    def marks(self) -> list[Mark]:
        """All in range, of whatever topic."""
        return list(self.reading.marks.values())

    async def load(self) -> None:
        """Read the range from storage."""
        await self.part.attempt(self._load)

    def hear(self, envelopes: list[Envelope], has_missed: bool) -> Any:
        """What was told since."""
        if has_missed:
            return self.load()
        events = [event for event in map(TimelineEvent.of, envelopes) if self._fits(event)]
        fresh = self.reading.read(events)
        if not fresh:
            return None
        if self.is_live:
            self._add(fresh)
        else:
            self._waiting = (self._waiting + fresh)[-_MOST_WAITING:]
            self._tell_live()
        return None

    def tick(self) -> None:
        """Time goes on."""
        if self.is_live and self.chart is not None:
            self.chart.move()
        self.reading.forget(datetime.now(UTC) - timedelta(seconds=RANGES[self.range]) - _KEPT_BEYOND)

    async def choose(self, event_id: str | None) -> None:
        """Show an event with what led to it and what it led to."""
        mark = self.reading.marks.get(event_id or "")
        if mark is None:
            self.drawer.close()
            self._links = []
            self.frame.remember(event=None)
            self._show_selection([])
            return
        if self.is_live:
            self.toggle_live()
        around = {one.event.event_id: one.event for one in self.marks if one.event.trace_id == mark.event.trace_id}
        around |= {event.event_id: event for event in await events_around(self.frame.backend, mark.event)}
        roots = story_of(mark.event, around.values())
        events, self._links = chain_of(roots, mark.event.event_id)
        self.drawer.show(mark, [root for root in roots if any(n.name == mark.event.event_id for _, n in root.walk())])
        self.frame.remember(event=mark.event.event_id)
        self._show_selection([event.event_id for event in events])

    def see(self, zoom: str, is_at_edge: bool) -> None:
        """Another part of the range is looked at."""
        self.frame.remember(zoom=zoom)
        if self.is_live and not is_at_edge:
            self.toggle_live()

    def zoom(self, factor: float, _row: str | None) -> None:
        """Nearer, farther; all of it with 0."""
        if self.chart is not None:
            self.chart.zoom(factor)

    def toggle_live(self) -> None:
        """Follow the right edge, or stay."""
        self.is_live = not self.is_live
        if self.is_live:
            fresh, self._waiting = self._waiting, []
            self._add(fresh)
        self.frame.remember(live=None if self.is_live else "0")
        self._tell_live()

    def toggle_table(self) -> None:
        """The chart, or its twin."""
        if self.frame.viewer.is_phone:
            return
        self.is_table = not self.is_table
        self.frame.remember(view="table" if self.is_table else None)
        self._draw_view()
        self.redraw()

    def follow_trace(self) -> None:
        """Only the trace of what is selected."""
        mark = self.reading.marks.get(self.drawer.selected or "")
        if mark is not None and mark.event.trace_id:
            self.filters.go(trace=mark.event.trace_id, event=mark.event.event_id)

    def redraw(self) -> None:
        """All of it anew."""
        marks = self.marks
        self.filters.count(marks)
        shown = [mark for mark in marks if self.filters.shows(mark)]
        show_if(self._empty, not marks)
        if self.chart is not None:
            self.chart.show(self.reading, RANGES[self.range], self.filters.hidden, self.frame.backend.feed.workers)
        if self.listing is not None:
            self.listing.show(shown, self.drawer.selected, self._links)
        self.frame.subtitle(self.frame.words.count("timeline.events", len(shown)))

    async def _load(self) -> None:
        since = datetime.now(UTC) - timedelta(seconds=RANGES[self.range])
        events, is_all = await events_since(self.frame.backend, since, self.filters.user, self.filters.trace)
        self.reading.read(events)
        if not events:
            await self._explain_nothing()
        self.redraw()
        if self.listing is not None:
            self.listing.watch()
        if not is_all:
            self.frame.say(self.frame.words("timeline.too_many", n=self.frame.words.number(MOST_PAGES * 500)))

    async def _explain_nothing(self) -> None:
        words = self.frame.words
        has_earlier = bool((await self.frame.backend.timeline(GetTimeline(limit=1))).items)
        self._empty_title.set_text(words("timeline.quiet_title" if has_earlier else "timeline.empty_title"))
        self._empty_text.set_text(words("timeline.quiet" if has_earlier else "timeline.empty"))

    def _fits(self, event: TimelineEvent) -> bool:
        return self.filters.user in (None, event.user_id) and self.filters.trace in (None, event.trace_id)

    def _add(self, fresh: list[Mark]) -> None:
        lanes = self.reading.lanes()
        if self.chart is not None and self.chart.lanes == lanes:
            self.chart.add(fresh)
            self.chart.show_heads(self.reading, self.frame.backend.feed.workers)
            self.filters.count(self.marks)
            self.frame.subtitle(self.frame.words.count("timeline.events", len(self.marks)))
        else:
            self.redraw()

    def _show_selection(self, chain: list[str]) -> None:
        if self.chart is not None:
            self.chart.select(self.drawer.selected, chain, self._links, self.reading)
        if self.listing is not None:
            shown = [mark for mark in self.marks if self.filters.shows(mark)]
            self.listing.show(shown, self.drawer.selected, self._links)
            if self.drawer.selected and self.frame.viewer.is_phone:
                self.listing.reveal(self.drawer.selected)

    def _draw_view(self) -> None:
        self.place.classes(add="" if self.is_table else "mb-has-chart", remove="mb-has-chart" if self.is_table else "")
        if self.chart is not None:
            self.chart.delete()
        if self.listing is not None:
            self.listing.delete()
        self.chart = self.listing = None
        with self.place:
            if self.is_table:
                self.listing = Listing(self.frame.words, self.place, self.choose, is_phone=self.frame.viewer.is_phone)
            else:
                self.chart = Chart(self.frame.viewer, self.frame.query.get("zoom", ""), self.see)

    def _controls(self) -> None:
        words = self.frame.words
        with self.frame.controls:
            with box("mb-not-phone"):
                Segments([(key, words(f"range.{key}")) for key in RANGES], self.range, self._choose_range)
            icon_button("table", words("timeline.as_table"), self.toggle_table, "mb-not-phone")
            self._live = attributes(box("mb-live", "button"), type="button")
            self._live.on("click", self.toggle_live)
            with self._live:
                box("mb-dot", "i")
                self._live_text = text("")
        self._tell_live()

    def _tell_live(self) -> None:
        words = self.frame.words
        said = words("live") if self.is_live else words("paused")
        if self._waiting:
            said = words("paused_with", n=words.number(len(self._waiting)))
        self._live_text.set_text(said)
        attributes(self._live, aria_pressed=str(self.is_live).lower()).update()

    def _choose_range(self, chosen: str) -> None:
        self.frame.remember(range=chosen if chosen != _USUAL else None, event=None, zoom=None)
        ui.run_javascript("location.reload()")

    def _nothing(self) -> Any:
        words = self.frame.words
        with box("mb-empty mb-hidden") as made:
            icon("timeline")
            self._empty_title = text(words("timeline.empty_title"), "mb-title", "h2")
            self._empty_text = text(words("timeline.empty"), "", "p")
            with box("mb-line-x"):
                anchor("/sim", words("sim.start"), "mb-btn mb-primary")
                anchor("/chat", words("timeline.open_chat"), "mb-btn")
            with box("mb-cli"):
                text("$", "mb-t3")
                text("mindbus sim start --speed 60", "mb-ell")
                copy_button(words, "mindbus sim start --speed 60")
        return made

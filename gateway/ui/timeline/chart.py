"""The timeline as a chart with lane headings or as a table; the browser draws and zooms the chart."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.element import Element

from gateway.event_feed import WorkerInstance
from gateway.ui.components import attributes, box, text, toggle
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import PageSession
from gateway.ui.timeline.event_list import EventList
from gateway.ui.timeline.events import TimelineEvents
from gateway.ui.timeline.filters import TimelineFilters
from gateway.ui.timeline.lanes import LaneHeads, busiest, lanes_of
from gateway.ui.timeline.marks import EventMark
from gateway.ui.timeline.ranges import TimelineRange

_TOP_PX, _AXIS_PX = 84, 28
_LOWEST_PX, _HIGHEST_PX = 46, 84
# The bars above the chart, its overview, its scale, the line of the folded lanes.
_AROUND_PX = 48 + 44 + _TOP_PX + _AXIS_PX + 30
# Percent of the range; a view that ends further left does not follow live events.
_RIGHT_EDGE = 99.5
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class ShownWindow:
    """The part of the range that the chart shows; `zoom` is empty for all of it, else percents of the range."""

    since: datetime
    until: datetime
    zoom: str
    is_at_edge: bool


class TimelineChart:
    """The chart's state is in the browser; this class sends it marks."""

    def __init__(self, session: PageSession, filters: TimelineFilters, on_zoom: Callable[[ShownWindow], Any]) -> None:
        client = session.client
        self.i18n, self._on_zoom, self._session = client.i18n, on_zoom, session
        self._zoom = _zoom_of(session.query.get("zoom", ""))
        self._room_px, self._is_traces = client.height - _AROUND_PX, filters.group == "trace"
        i18n = self.i18n
        # Those that are drawn, and all.
        self.lanes: list[str] = []
        self.known_lanes: list[str] = []
        self._range_s = 900.0
        self._again: Callable[[], None] = lambda: None
        with box("mb-chart") as self.element:
            with box("mb-lanes"):
                with box("mb-span"):
                    self._span = text("", "mb-num mb-medium")
                    self._total = text("", "mb-meta mb-num")
                    self._zoomed = text("", "mb-meta mb-num")
                self._heads = LaneHeads(i18n, self._fold)
            self._chart = attributes(ui.echart({"series": []}).classes("mb-echart"), role="img")
            with box("mb-axis"):
                with box("mb-legend"):
                    for shape, key in (("◇", "command"), ("●", "event"), ("▮", "work"), ("✕", "failure")):
                        attributes(text(shape, "mb-t2"), title=i18n(f"timeline.{key}"))
                self._axis = attributes(box("mb-ticks mb-num"), aria_hidden="true")
        ui.on("mb_zoom", self._tell_zoom)

    def show(self, events: TimelineEvents, hidden: Collection[str], workers: Sequence[WorkerInstance]) -> None:
        self._again = partial(self.show, events, hidden, workers)
        self._range_s, self.known_lanes = events.range.span.total_seconds(), events.lanes()
        room = max(1, self._room_px // _LOWEST_PX)
        fitting = busiest(self.known_lanes, events.sizes(), room, is_traces=self._is_traces)
        is_unfolded = "lanes" in self._session.query
        self.lanes = list(self.known_lanes) if is_unfolded and not self._is_traces else fitting
        folded = [lane for lane in self.known_lanes if lane not in self.lanes]
        # Lanes are lower where many of them would not fit.
        count = max(1, len(self.lanes))
        lane_px = max(_LOWEST_PX, min(_HIGHEST_PX, self._room_px // count))
        self.element.style(f"--lane: {lane_px}px")
        self._chart.style(f"height: {_TOP_PX + count * lane_px}px")
        counts = events.counts.drawn({} if self._is_traces else self._numbers)
        marks = self._drawn((events.failures.marks | events.newest.marks).values())
        span = [moment.timestamp() * 1000 for moment in (events.range.start, events.range.end)]
        self._call("set", self.lanes, lane_px, sorted(hidden), marks, counts, *span)
        self.show_window(events)
        self.show_heads(events, workers)
        self._heads.show_folded([] if self._is_traces else folded, can_fold=len(fitting) < len(self.lanes))

    def show_window(self, events: TimelineEvents) -> None:
        """Draw what has been read of the window looked at."""
        detail = events.detail.drawn(self._numbers) if events.detail is not None else None
        self._call("look", self._drawn(events.window.marks.values()), detail, events.covered())

    def show_heads(self, events: TimelineEvents, workers: Sequence[WorkerInstance]) -> None:
        i18n = self.i18n
        self._heads.show(lanes_of(events, self.lanes, workers, is_traces=self._is_traces))
        self._span.set_text(span_text(i18n, events.range))
        total = i18n.count("timeline.events", sum(events.counts.by_service().values()))
        self._total.set_text(total)
        attributes(self._chart, aria_label=f"{self._span.text}: {total}")

    def centre(self, moments: Sequence[datetime]) -> None:
        """Bring events into the middle of the window."""
        if moments:
            self._call("centre", *(moment.timestamp() * 1000 for moment in (min(moments), max(moments))))

    def unfold(self) -> None:
        """Draw all lanes, since one of them is needed."""
        if len(self.lanes) < len(self.known_lanes):
            self._session.remember(lanes="all")
            self._again()

    def _fold(self) -> None:
        self._session.remember(lanes=None if "lanes" in self._session.query else "all")
        self._again()

    def add(self, fresh: Sequence[EventMark]) -> None:
        self._call("add", self._drawn(fresh), _now())

    def move(self) -> None:
        self._call("move", _now())

    def zoom(self, factor: float) -> None:
        self._call("step", factor)

    def select(
        self, event_id: str | None, chain: Sequence[str], links: Sequence[tuple[str, str]], events: TimelineEvents
    ) -> None:
        """Draw the causation chain of an event and dim the rest."""
        marks = {mark.event.event_id: mark for mark in events.marks()} if event_id else {}
        if any(marks[one].lane not in self.lanes for one in chain if one in marks):
            self.unfold()
        marks = {one: mark for one, mark in marks.items() if mark.lane in self.lanes}
        pairs = [(marks[source], marks[target]) for source, target in links if source in marks and target in marks]
        self._call("select", event_id, chain, [[*self._place(one), *self._place(other)] for one, other in pairs])

    @property
    def _numbers(self) -> dict[str, int]:
        return {lane: place for place, lane in enumerate(self.lanes)}

    def _drawn(self, marks: Iterable[EventMark]) -> list[dict[str, Any]]:
        numbers, names = self._numbers, self._session.backend.names
        return [mark.drawn(self.i18n, names, numbers) for mark in marks if mark.lane in numbers]

    def _place(self, mark: EventMark) -> tuple[float, int]:
        return mark.event.time.timestamp() * 1000, self.lanes.index(mark.lane)

    def _call(self, method: str, *values: object) -> None:
        i18n = {
            "s": self.i18n("unit.s"),
            "cell": self.i18n("timeline.cell"),
            "zoom": self._zoom,
            "axis": f"c{self._axis.id}",
            "language": self.i18n.language,
            "traces": self._is_traces,
        }
        arguments = ", ".join(json.dumps(value, ensure_ascii=True) for value in values)
        ui.run_javascript(f"mbTimeline({self._chart.id}, {json.dumps(i18n)}).{method}({arguments})")

    def _tell_zoom(self, event: object) -> Any:
        args = getattr(event, "args", {})
        since, until = (datetime.fromtimestamp(float(args[key]) / 1000, UTC) for key in ("from", "to"))
        span_s, start, end = (until - since).total_seconds(), float(args["start"]), float(args["end"])
        is_whole = span_s >= self._range_s * 0.99 or bool(args.get("fitted"))
        self._zoomed.set_text("" if is_whole else self.i18n("timeline.showing", time=self.i18n.span(span_s)))
        zoom = "" if is_whole else f"{start:.1f}-{end:.1f}"
        return self._on_zoom(ShownWindow(since, until, zoom, is_at_edge=bool(args.get("fitted")) or end >= _RIGHT_EDGE))


def _zoom_of(text: str) -> list[float]:
    start, _, end = text.partition("-")
    try:
        return [float(start), float(end)]
    except ValueError:
        return []


def _now() -> float:
    return datetime.now(UTC).timestamp() * 1000


def span_text(i18n: Localizer, shown: TimelineRange) -> str:
    """From when to when, with the days where they are not today's."""
    start, end, now = shown.start, shown.end, datetime.now(UTC)
    if shown.span < _DAY and shown.until is None:
        return f"{i18n.hour(start)} – {i18n.hour(end)}"
    return f"{i18n.date(start, now)} {i18n.hour(start)} – {i18n.date(end, now)} {i18n.hour(end)}"


class TimelineView:
    """The chart or the table of the same marks; on a phone the table."""

    def __init__(
        self,
        session: PageSession,
        filters: TimelineFilters,
        place: Element,
        choose: Callable[[str | None], Any],
        see: Callable[[ShownWindow], Any],
    ) -> None:
        self.session, self._place = session, place
        self._filters, self._choose, self._see = filters, choose, see
        self._shown: TimelineChart | EventList | None = None
        self.is_table = session.client.is_phone or session.query.get("view") == "table"
        self._open()

    def _open(self) -> None:
        session = self.session
        toggle(self._place, "mb-has-chart", is_on=not self.is_table)
        if self._shown is not None:
            self._shown.element.delete()
        with self._place:
            if self.is_table:
                self._shown = EventList(
                    session.i18n, session.backend.names, self._choose, is_phone=session.client.is_phone
                )
            else:
                self._shown = TimelineChart(session, self._filters, self._see)

    def turn(self) -> None:
        self.is_table = not self.is_table
        self.session.remember(view="table" if self.is_table else None)
        self._open()

    def show(
        self, events: TimelineEvents, filters: TimelineFilters, selected: str | None, links: Sequence[tuple[str, str]]
    ) -> None:
        if isinstance(self._shown, TimelineChart):
            self._shown.show(events, filters.hidden, self.session.backend.feed.workers)
        elif self._shown is not None:
            marks = [mark for mark in events.newest.marks.values() if filters.shows(mark)]
            self._shown.show(marks, events.counts.by_slot(filters.hidden), selected, links)

    def add(self, events: TimelineEvents, fresh: Sequence[EventMark]) -> bool:
        """Append marks; False if everything must be redrawn."""
        chart = self.chart
        if chart is None or chart.known_lanes != events.lanes():
            return False
        chart.add(fresh)
        chart.show_heads(events, self.session.backend.feed.workers)
        return True

    @property
    def chart(self) -> TimelineChart | None:
        return self._shown if isinstance(self._shown, TimelineChart) else None

    def select(
        self,
        events: TimelineEvents,
        filters: TimelineFilters,
        selected: str | None,
        chain: Sequence[str],
        links: Sequence[tuple[str, str]],
    ) -> None:
        if self.chart is not None:
            self.chart.select(selected, chain, links, events)
            return
        self.show(events, filters, selected, links)
        if selected and self.session.client.is_phone:
            ui.run_javascript(f"document.querySelector('[data-row={json.dumps(selected)}]')?.scrollIntoView()")

    def centre(self, events: TimelineEvents, event_id: str, chain: Sequence[str]) -> None:
        """Bring an event with its chain into the middle of the window."""
        if self.chart is not None:
            wanted = {event_id, *chain}
            marks = {mark.event.event_id: mark for mark in [*events.around.marks.values(), *events.marks()]}
            self.chart.centre([mark.event.time for one, mark in marks.items() if one in wanted])

    def watch(self) -> None:
        """Keep a table scrolled to its end while it grows."""
        if self.chart is None:
            ui.run_javascript(f"mbWatch({self._place.id})")

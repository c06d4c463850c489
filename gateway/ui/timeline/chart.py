"""The timeline as a chart with lane headings or as a table; the browser draws and zooms the chart."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median_high
from typing import Any

from nicegui import ui
from nicegui.element import Element

from gateway.event_feed import WorkerInstance, latest
from gateway.ui.components import box, text, toggle
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import ClientInfo, PageSession
from gateway.ui.rows import Rows
from gateway.ui.timeline.event_list import EventList
from gateway.ui.timeline.events import TimelineEvents
from gateway.ui.timeline.filters import TimelineFilters
from gateway.ui.timeline.marks import WORK, EventMark


@dataclass(frozen=True)
class Lane:
    """A service with the number of its events and their median duration."""

    name: str
    count: int
    p50_s: float | None
    health: str


def lanes_of(events: TimelineEvents, names: Sequence[str], workers: Sequence[WorkerInstance]) -> list[Lane]:
    """Lanes with the numbers of all their events and the durations of the newest."""
    state = {seen.service: "err" if seen.is_silent else "ok" for seen in latest(workers)}
    took: defaultdict[str, list[float]] = defaultdict(list)
    for mark in events.newest.marks.values():
        if mark.shape == WORK:
            took[mark.lane].append(mark.took_s)
    counts = events.counts.by_service()
    medians = {name: median_high(durations) for name, durations in took.items()}
    return [Lane(name, counts[name], medians.get(name), state.get(name, "t3")) for name in names]


class _LaneHead:
    def __init__(self, i18n: Localizer, lane: Lane) -> None:
        self._i18n = i18n
        with box("mb-lane") as self.element:
            with box("mb-line-x"):
                self._dot = box("mb-dot", "i")
                text(lane.name, "mb-medium mb-ell")
            self._counts = text("", "mb-meta mb-num mb-ell")

    def show(self, lane: Lane) -> None:
        self._dot.classes(replace=f"mb-dot mb-{lane.health} {'mb-square' if lane.health == 'err' else ''}")
        p50 = f" · p50 {self._i18n.seconds(lane.p50_s)}" if lane.p50_s is not None else ""
        self._counts.set_text(f"{self._i18n.number(lane.count)}{p50}")


_TOP_PX, _FOOT_PX = 84, 36
_LOWEST_PX, _HIGHEST_PX = 60, 84
# The bars above the chart, its overview, its scale.
_AROUND_PX = 48 + 44 + _TOP_PX + _FOOT_PX
# Percent of the range; a view that ends further left does not follow live events.
_RIGHT_EDGE = 99.5


@dataclass(frozen=True)
class ShownWindow:
    """The part of the range that the chart shows; `zoom` is empty for all of it, else percents of the range."""

    since: datetime
    until: datetime
    zoom: str
    is_at_edge: bool


class TimelineChart:
    """The chart's state is in the browser; this class sends it marks."""

    def __init__(self, client: ClientInfo, zoom: str, on_zoom: Callable[[ShownWindow], Any]) -> None:
        self.i18n, self._zoom, self._on_zoom = client.i18n, _zoom_of(zoom), on_zoom
        self._room_px = client.height - _AROUND_PX
        i18n = self.i18n
        self.lanes: list[str] = []
        self._range_s = 900
        with box("mb-chart") as self.element:
            with box("mb-lanes"):
                with box("mb-span"):
                    self._span = text("", "mb-num mb-medium")
                    self._total = text("", "mb-meta mb-num")
                    self._zoomed = text("", "mb-meta mb-num")
                self._heads: Rows[Lane] = Rows(box(), lambda lane: _LaneHead(i18n, lane))
                with box("mb-legend"):
                    for shape, key in (("◇", "command"), ("●", "event"), ("▮", "work"), ("✕", "failure")):
                        with box("mb-legend-item"):
                            text(shape, "mb-t2")
                            text(i18n(f"timeline.{key}"))
            self._chart = ui.echart({"series": []}).classes("mb-echart")
        ui.on("mb_zoom", self._tell_zoom)

    def show(
        self, events: TimelineEvents, range_s: int, hidden: Collection[str], workers: Sequence[WorkerInstance]
    ) -> None:
        self.lanes, self._range_s = events.lanes(), range_s
        now = datetime.now(UTC)
        start = (now - timedelta(seconds=range_s)).timestamp() * 1000
        # Lanes are lower where many of them would not fit.
        count = max(1, len(self.lanes))
        lane_px = max(_LOWEST_PX, min(_HIGHEST_PX, self._room_px // count))
        self.element.style(f"--lane: {lane_px}px")
        self._chart.style(f"height: {_TOP_PX + count * lane_px + _FOOT_PX}px")
        counts = events.counts.drawn(self._numbers)
        marks = self._drawn((events.failures.marks | events.newest.marks).values())
        self._call("set", self.lanes, lane_px, sorted(hidden), marks, counts, start, now.timestamp() * 1000)
        self.show_window(events)
        self.show_heads(events, workers)

    def show_window(self, events: TimelineEvents) -> None:
        """Draw what has been read of the window looked at."""
        detail = events.detail.drawn(self._numbers) if events.detail is not None else None
        self._call("look", self._drawn(events.window.marks.values()), detail, events.covered())

    def show_heads(self, events: TimelineEvents, workers: Sequence[WorkerInstance]) -> None:
        i18n = self.i18n
        lanes = lanes_of(events, self.lanes, workers)
        self._heads.show((lane.name, lane) for lane in lanes)
        now = datetime.now(UTC)
        self._span.set_text(f"{i18n.hour(now - timedelta(seconds=self._range_s))} – {i18n.hour(now)}")
        self._total.set_text(i18n.count("timeline.events", sum(lane.count for lane in lanes)))

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
        marks = {mark.event.event_id: mark for mark in events.marks()} if links else {}
        pairs = [(marks[source], marks[target]) for source, target in links if source in marks and target in marks]
        self._call("select", event_id, chain, [[*self._place(one), *self._place(other)] for one, other in pairs])

    @property
    def _numbers(self) -> dict[str, int]:
        return {lane: place for place, lane in enumerate(self.lanes)}

    def _drawn(self, marks: Iterable[EventMark]) -> list[dict[str, Any]]:
        numbers = self._numbers
        return [mark.drawn(self.i18n, numbers) for mark in marks]

    def _place(self, mark: EventMark) -> tuple[float, int]:
        return mark.event.time.timestamp() * 1000, self.lanes.index(mark.lane)

    def _call(self, method: str, *values: object) -> None:
        i18n = {"s": self.i18n("unit.s"), "cell": self.i18n("timeline.cell"), "zoom": self._zoom}
        arguments = ", ".join(json.dumps(value, ensure_ascii=True) for value in values)
        ui.run_javascript(f"mbTimeline({self._chart.id}, {json.dumps(i18n)}).{method}({arguments})")

    def _tell_zoom(self, event: object) -> Any:
        args = getattr(event, "args", {})
        since, until = (datetime.fromtimestamp(float(args[key]) / 1000, UTC) for key in ("from", "to"))
        span_s, start, end = (until - since).total_seconds(), float(args["start"]), float(args["end"])
        is_whole = span_s >= self._range_s * 0.99
        self._zoomed.set_text("" if is_whole else self.i18n("timeline.showing", time=self.i18n.span(span_s)))
        zoom = "" if is_whole else f"{start:.1f}-{end:.1f}"
        return self._on_zoom(ShownWindow(since, until, zoom, is_at_edge=end >= _RIGHT_EDGE))


def _zoom_of(text: str) -> list[float]:
    start, _, end = text.partition("-")
    try:
        return [float(start), float(end)]
    except ValueError:
        return []


def _now() -> float:
    return datetime.now(UTC).timestamp() * 1000


class TimelineView:
    """The chart or the table of the same marks; on a phone the table."""

    def __init__(
        self,
        session: PageSession,
        place: Element,
        range_s: int,
        choose: Callable[[str | None], Any],
        see: Callable[[ShownWindow], Any],
    ) -> None:
        self.session, self._place, self._range_s = session, place, range_s
        self._choose, self._see = choose, see
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
                self._shown = EventList(session.i18n, self._choose, is_phone=session.client.is_phone)
            else:
                self._shown = TimelineChart(session.client, session.query.get("zoom", ""), self._see)

    def turn(self) -> None:
        self.is_table = not self.is_table
        self.session.remember(view="table" if self.is_table else None)
        self._open()

    def show(
        self, events: TimelineEvents, filters: TimelineFilters, selected: str | None, links: Sequence[tuple[str, str]]
    ) -> None:
        if isinstance(self._shown, TimelineChart):
            self._shown.show(events, self._range_s, filters.hidden, self.session.backend.feed.workers)
        elif self._shown is not None:
            marks = [mark for mark in events.newest.marks.values() if filters.shows(mark)]
            self._shown.show(marks, events.counts.by_slot(filters.hidden), selected, links)

    def add(self, events: TimelineEvents, fresh: Sequence[EventMark]) -> bool:
        """Append marks; False if everything must be redrawn."""
        chart = self.chart
        if chart is None or chart.lanes != events.lanes():
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

    def watch(self) -> None:
        """Keep a table scrolled to its end while it grows."""
        if self.chart is None:
            ui.run_javascript(f"mbWatch({self._place.id})")

"""The timeline as a chart with lane headings or as a table; the browser draws and zooms the chart."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from gateway.event_feed import WorkerInstance
from gateway.ui.activity import latest
from gateway.ui.components import Rows, box, text
from gateway.ui.i18n import Localizer
from gateway.ui.page_session import ClientInfo, PageSession
from gateway.ui.timeline.event_list import EventList
from gateway.ui.timeline.filters import TimelineFilters
from gateway.ui.timeline.marks import WORK, EventMark, TimelineMarks


@dataclass(frozen=True)
class Lane:
    """A service with the number and median duration of its marks."""

    name: str
    count: int
    p50_s: float | None
    health: str


def lanes_of(names: Sequence[str], marks: Sequence[EventMark], workers: Sequence[WorkerInstance]) -> list[Lane]:
    state = {seen.service: "err" if seen.is_silent else "ok" for seen in latest(list(workers))}
    found = []
    for name in names:
        own = [mark for mark in marks if mark.lane == name]
        took = sorted(mark.took_s for mark in own if mark.shape == WORK)
        found.append(Lane(name, len(own), took[len(took) // 2] if took else None, state.get(name, "t3")))
    return found


class LaneHeads:
    """Headings beside the lanes of the chart."""

    def __init__(self, i18n: Localizer, place: Element) -> None:
        self.i18n = i18n
        self._rows: Rows[Lane] = Rows(place, self._head)

    def show(self, lanes: Sequence[Lane]) -> None:
        self._rows.show((lane.name, lane) for lane in lanes)

    def _head(self, lane: Lane) -> Any:
        return _LaneHead(self.i18n, lane)


class _LaneHead:
    def __init__(self, i18n: Localizer, lane: Lane) -> None:
        self._i18n = i18n
        with box("mb-lane") as self.element:
            with box("mb-line-x"):
                self._dot = box("mb-dot", "i")
                text(lane.name, "mb-medium mb-ell")
            self._counts: TextElement = text("", "mb-meta mb-num mb-ell")

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


class TimelineChart:
    """The chart's state is in the browser; this class sends it marks."""

    def __init__(self, client: ClientInfo, zoom: str, on_zoom: Callable[[str, bool], Any]) -> None:
        self.i18n, self._zoom, self._on_zoom = client.i18n, _zoom_of(zoom), on_zoom
        self._room_px = client.height - _AROUND_PX
        i18n = self.i18n
        self.lanes: list[str] = []
        self._range_s = 900
        self._span_s = 900.0
        with box("mb-chart") as self.element:
            with box("mb-lanes"):
                with box("mb-span"):
                    self._span = text("", "mb-num mb-medium")
                    self._total = text("", "mb-meta mb-num")
                    self._zoomed = text("", "mb-meta mb-num")
                self._heads = LaneHeads(i18n, box(""))
                with box("mb-legend"):
                    for shape, key in (("◇", "command"), ("●", "event"), ("▮", "work"), ("✕", "failure")):
                        with box("mb-legend-item"):
                            text(shape, "mb-t2")
                            text(i18n(f"timeline.{key}"))
            self._chart = ui.echart({"series": []}).classes("mb-echart")
        ui.on("mb_zoom", self._tell_zoom)

    def show(
        self, reading: TimelineMarks, range_s: int, hidden: Collection[str], workers: Sequence[WorkerInstance]
    ) -> None:
        self.lanes, self._range_s = reading.lanes(), range_s
        numbers = {lane: place for place, lane in enumerate(self.lanes)}
        now = datetime.now(UTC)
        start = (now - timedelta(seconds=range_s)).timestamp() * 1000
        marks = [mark.drawn(self.i18n, numbers) for mark in reading.marks.values()]
        # Lanes are lower where many of them would not fit.
        count = max(1, len(self.lanes))
        lane_px = max(_LOWEST_PX, min(_HIGHEST_PX, self._room_px // count))
        self.element.style(f"--lane: {lane_px}px")
        self._chart.style(f"height: {_TOP_PX + count * lane_px + _FOOT_PX}px")
        self._call("fit", lane_px)
        self._call("hide", sorted(hidden))
        self._call("set", self.lanes, marks, start, now.timestamp() * 1000)
        self.show_heads(reading, workers)

    def show_heads(self, reading: TimelineMarks, workers: Sequence[WorkerInstance]) -> None:
        i18n, marks = self.i18n, list(reading.marks.values())
        self._heads.show(lanes_of(self.lanes, marks, workers))
        now = datetime.now(UTC)
        self._span.set_text(f"{i18n.hour(now - timedelta(seconds=self._range_s))} – {i18n.hour(now)}")
        self._total.set_text(i18n.count("timeline.events", len(marks)))

    def add(self, fresh: Sequence[EventMark]) -> None:
        numbers = {lane: place for place, lane in enumerate(self.lanes)}
        self._call("add", [mark.drawn(self.i18n, numbers) for mark in fresh], _now())

    def move(self) -> None:
        self._call("move", _now())

    def zoom(self, factor: float) -> None:
        self._call("step", factor)

    def select(
        self, event_id: str | None, chain: Sequence[str], links: Sequence[tuple[str, str]], reading: TimelineMarks
    ) -> None:
        """Draw the causation chain of an event and dim the rest."""
        numbers = {lane: place for place, lane in enumerate(self.lanes)}
        drawn = []
        for source, target in links:
            one, other = reading.marks.get(source), reading.marks.get(target)
            if one is not None and other is not None:
                drawn.append([*_place(one, numbers), *_place(other, numbers)])
        self._call("select", event_id, list(chain), drawn)

    def delete(self) -> None:
        self.element.delete()

    def _call(self, method: str, *values: object) -> None:
        i18n = {"s": self.i18n("unit.s"), "cell": self.i18n("timeline.cell"), "zoom": self._zoom}
        given = ", ".join(json.dumps(value, ensure_ascii=True) for value in values)
        ui.run_javascript(f"mbTimeline({self._chart.id}, {json.dumps(i18n)}).{method}({given})")

    def _tell_zoom(self, event: object) -> None:
        told = getattr(event, "args", {})
        span_s, start, end = float(told["span"]) / 1000, float(told["start"]), float(told["end"])
        is_whole = span_s >= self._range_s * 0.99
        self._zoomed.set_text("" if is_whole else self.i18n("timeline.showing", time=self.i18n.span(span_s)))
        self._on_zoom("" if is_whole else f"{start:.1f}-{end:.1f}", end >= _RIGHT_EDGE)


def _place(mark: EventMark, numbers: dict[str, int]) -> tuple[float, int]:
    return mark.event.time.timestamp() * 1000, numbers[mark.lane]


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

    def __init__(self, session: PageSession, place: Element, reading: TimelineMarks, range_s: int) -> None:
        self.session, self._place, self.reading, self._range_s = session, place, reading, range_s
        self._chart: TimelineChart | None = None
        self._listing: EventList | None = None
        self.is_table = session.client.is_phone or session.query.get("view") == "table"
        self.choose: Callable[[str | None], Any] = lambda _event: None
        self.see: Callable[[str, bool], Any] = lambda _zoom, _is_at_edge: None

    def open(self) -> None:
        self._place.classes(add="" if self.is_table else "mb-has-chart", remove="mb-has-chart" if self.is_table else "")
        for old in (self._chart, self._listing):
            if old is not None:
                old.delete()
        self._chart = self._listing = None
        session = self.session
        with self._place:
            if self.is_table:
                self._listing = EventList(session.i18n, self._place, self.choose, is_phone=session.client.is_phone)
            else:
                self._chart = TimelineChart(session.client, session.query.get("zoom", ""), self.see)

    def turn(self) -> None:
        self.is_table = not self.is_table
        self.session.remember(view="table" if self.is_table else None)
        self.open()

    def show(self, filters: TimelineFilters, selected: str | None, links: Sequence[tuple[str, str]]) -> None:
        if self._chart is not None:
            self._chart.show(self.reading, self._range_s, filters.hidden, self.session.backend.feed.workers)
        if self._listing is not None:
            shown = [mark for mark in self.reading.marks.values() if filters.shows(mark)]
            self._listing.show(shown, selected, links)

    def add(self, fresh: Sequence[EventMark]) -> bool:
        """Append marks; False if everything must be redrawn."""
        if self._chart is None or self._chart.lanes != self.reading.lanes():
            return False
        self._chart.add(fresh)
        self._chart.show_heads(self.reading, self.session.backend.feed.workers)
        return True

    def move(self) -> None:
        if self._chart is not None:
            self._chart.move()

    def zoom(self, factor: float) -> None:
        if self._chart is not None:
            self._chart.zoom(factor)

    def watch(self) -> None:
        if self._listing is not None:
            self._listing.watch()

    def select(
        self, filters: TimelineFilters, selected: str | None, chain: Sequence[str], links: Sequence[tuple[str, str]]
    ) -> None:
        if self._chart is not None:
            self._chart.select(selected, chain, links, self.reading)
            return
        self.show(filters, selected, links)
        if selected and self._listing is not None and self.session.client.is_phone:
            self._listing.reveal(selected)

"""The chart of the timeline with the heads of its lanes; the browser draws, zooms, follows."""

import json
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from nicegui import ui

from gateway.feed import Seen
from gateway.ui.parts import box, text
from gateway.ui.timeline.lanes import LaneHeads, lanes_of
from gateway.ui.timeline.marks import Mark, Reading
from gateway.ui.viewer import Viewer

_TOP_PX, _FOOT_PX = 84, 36
_LOWEST_PX, _HIGHEST_PX = 60, 84
# The bars above the chart, its overview, its scale.
_AROUND_PX = 48 + 44 + _TOP_PX + _FOOT_PX
# Percent of the range; whoever looks further left reads, and is not pushed on.
_RIGHT_EDGE = 99.5


class Chart:
    """Its state is in the browser; here is what is sent there."""

    def __init__(self, viewer: Viewer, zoom: str, on_zoom: Callable[[str, bool], Any]) -> None:
        self.words, self._zoom, self._on_zoom = viewer.words, _zoom_of(zoom), on_zoom
        self._room_px = viewer.height - _AROUND_PX
        words = self.words
        self.lanes: list[str] = []
        self._range_s = 900
        self._span_s = 900.0
        with box("mb-chart") as self.element:
            with box("mb-lanes"):
                with box("mb-span"):
                    self._span = text("", "mb-num mb-medium")
                    self._total = text("", "mb-meta mb-num")
                    self._zoomed = text("", "mb-meta mb-num")
                self._heads = LaneHeads(words, box(""))
                with box("mb-legend"):
                    for shape, key in (("◇", "command"), ("●", "event"), ("▮", "work"), ("✕", "failure")):
                        with box("mb-legend-item"):
                            text(shape, "mb-t2")
                            text(words(f"timeline.{key}"))
            self._chart = ui.echart({"series": []}).classes("mb-echart")
        ui.on("mb_zoom", self._tell_zoom)

    def show(self, reading: Reading, range_s: int, hidden: Collection[str], workers: Sequence[Seen]) -> None:
        """All marks anew."""
        self.lanes, self._range_s = reading.lanes(), range_s
        numbers = {lane: place for place, lane in enumerate(self.lanes)}
        now = datetime.now(UTC)
        start = (now - timedelta(seconds=range_s)).timestamp() * 1000
        marks = [mark.drawn(self.words, numbers) for mark in reading.marks.values()]
        # Lanes are lower where many of them would not fit.
        count = max(1, len(self.lanes))
        lane_px = max(_LOWEST_PX, min(_HIGHEST_PX, self._room_px // count))
        self.element.style(f"--lane: {lane_px}px")
        self._chart.style(f"height: {_TOP_PX + count * lane_px + _FOOT_PX}px")
        self._call("fit", lane_px)
        self._call("hide", sorted(hidden))
        self._call("set", self.lanes, marks, start, now.timestamp() * 1000)
        self.show_heads(reading, workers)

    def show_heads(self, reading: Reading, workers: Sequence[Seen]) -> None:
        """What stands beside the lanes."""
        words, marks = self.words, list(reading.marks.values())
        self._heads.show(lanes_of(self.lanes, marks, workers))
        now = datetime.now(UTC)
        self._span.set_text(f"{words.hour(now - timedelta(seconds=self._range_s))} – {words.hour(now)}")
        self._total.set_text(words.count("timeline.events", len(marks)))

    def add(self, fresh: Sequence[Mark]) -> None:
        """Some more, at the right edge."""
        numbers = {lane: place for place, lane in enumerate(self.lanes)}
        self._call("add", [mark.drawn(self.words, numbers) for mark in fresh], _now())

    def move(self) -> None:
        """Time has gone on."""
        self._call("move", _now())

    def zoom(self, factor: float) -> None:
        """Nearer, farther; all of it with 0."""
        self._call("step", factor)

    def select(
        self, event_id: str | None, chain: Sequence[str], links: Sequence[tuple[str, str]], reading: Reading
    ) -> None:
        """Draw the chain of one event, dim all else."""
        numbers = {lane: place for place, lane in enumerate(self.lanes)}
        drawn = []
        for source, target in links:
            one, other = reading.marks.get(source), reading.marks.get(target)
            if one is not None and other is not None:
                drawn.append([*_place(one, numbers), *_place(other, numbers)])
        self._call("select", event_id, list(chain), drawn)

    def delete(self) -> None:
        """The table takes its place."""
        self.element.delete()

    def _call(self, method: str, *values: object) -> None:
        words = {"s": self.words("unit.s"), "cell": self.words("timeline.cell"), "zoom": self._zoom}
        given = ", ".join(json.dumps(value, ensure_ascii=True) for value in values)
        ui.run_javascript(f"mbTimeline({self._chart.id}, {json.dumps(words)}).{method}({given})")

    def _tell_zoom(self, event: object) -> None:
        told = getattr(event, "args", {})
        span_s, start, end = float(told["span"]) / 1000, float(told["start"]), float(told["end"])
        is_whole = span_s >= self._range_s * 0.99
        self._zoomed.set_text("" if is_whole else self.words("timeline.showing", time=self.words.span(span_s)))
        self._on_zoom("" if is_whole else f"{start:.1f}-{end:.1f}", end >= _RIGHT_EDGE)


def _place(mark: Mark, numbers: dict[str, int]) -> tuple[float, int]:
    return mark.event.time.timestamp() * 1000, numbers[mark.lane]


def _zoom_of(text: str) -> list[float]:
    start, _, end = text.partition("-")
    try:
        return [float(start), float(end)]
    except ValueError:
        return []


def _now() -> float:
    return datetime.now(UTC).timestamp() * 1000

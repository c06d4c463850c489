"""The lanes of the timeline: their headings beside the chart, and which of them are folded away."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median_high
from typing import Any
from urllib.parse import urlencode

from nicegui.element import Element

from gateway.event_feed import WorkerInstance, latest
from gateway.ui.components import anchor, box, clickable, refill, short_id, show_if, text
from gateway.ui.i18n import Localizer
from gateway.ui.rows import Rows
from gateway.ui.svg import icon
from gateway.ui.timeline.events import TimelineEvents
from gateway.ui.timeline.marks import NO_TRACE, WORK

_MOST_NAMED = 3


@dataclass(frozen=True)
class Lane:
    """A service, or a trace, with the number of its events and the median duration of its work."""

    name: str
    count: int
    p50_s: float | None
    health: str
    target: str = ""


def lanes_of(
    events: TimelineEvents, names: Sequence[str], workers: Sequence[WorkerInstance], *, is_traces: bool
) -> list[Lane]:
    """Lanes with the numbers of all their events and the durations of the newest."""
    state = {seen.service: "err" if seen.is_silent else "ok" for seen in latest(workers)}
    took: defaultdict[str, list[float]] = defaultdict(list)
    for mark in events.newest.marks.values():
        if mark.shape == WORK:
            took[mark.lane].append(mark.took_s)
    counts = events.sizes()
    medians = {name: median_high(durations) for name, durations in took.items()}
    return [
        Lane(
            name,
            counts[name],
            medians.get(name),
            state.get(name, "t3"),
            f"/timeline?{urlencode({'trace': name})}" if is_traces and name != NO_TRACE else "",
        )
        for name in names
    ]


def busiest(names: Sequence[str], counts: Counter[str], room: int, *, is_traces: bool) -> list[str]:
    """As many lanes as there is room for, in their order: of services those with most events, of traces the latest."""
    if len(names) <= room:
        return list(names)
    kept = names[:room] if is_traces else sorted(names, key=lambda name: -counts[name])[:room]
    return [name for name in names if name in kept]


class LaneHeads:
    """Headings of the drawn lanes, then one line for those that are folded."""

    def __init__(self, i18n: Localizer, on_fold: Callable[[], Any]) -> None:
        self._i18n = i18n
        self._heads: Rows[Lane] = Rows(box(), lambda lane: _LaneHead(i18n, lane))
        self._fold: Element = clickable("mb-lane-fold mb-hidden", on_fold)

    def show(self, lanes: Sequence[Lane]) -> None:
        self._heads.show((lane.name, lane) for lane in lanes)

    def show_folded(self, folded: Sequence[str], *, can_fold: bool) -> None:
        i18n = self._i18n
        show_if(self._fold, folded or can_fold)
        with refill(self._fold):
            icon("down" if folded else "up", "mb-i14")
            names = ", ".join(map(short_id, folded[:_MOST_NAMED])) + ("…" if len(folded) > _MOST_NAMED else "")
            label = i18n.count("timeline.quieter", len(folded), names=names) if folded else i18n("timeline.fewer")
            text(label, "mb-ell")


class _LaneHead:
    def __init__(self, i18n: Localizer, lane: Lane) -> None:
        self._i18n = i18n
        with box("mb-lane") as self.element:
            with box("mb-line-x"):
                self._dot = box("mb-dot", "i")
                if lane.target:
                    anchor(lane.target, short_id(lane.name), "mb-medium mb-ell").props["title"] = lane.name
                else:
                    text(lane.name, "mb-medium mb-ell").props["title"] = lane.name
            self._counts = text("", "mb-meta mb-num mb-ell")

    def show(self, lane: Lane) -> None:
        self._dot.classes(replace=f"mb-dot mb-{lane.health} {'mb-square' if lane.health == 'err' else ''}")
        p50 = f" · p50 {self._i18n.seconds(lane.p50_s)}" if lane.p50_s is not None else ""
        self._counts.set_text(f"{self._i18n.number(lane.count)}{p50}")

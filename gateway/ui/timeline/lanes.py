"""The heads of the lanes, beside the chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from gateway.feed import Seen
from gateway.ui.parts import box, text
from gateway.ui.pulse import latest
from gateway.ui.rows import Rows
from gateway.ui.timeline.marks import WORK, Mark
from gateway.ui.words import Words


@dataclass(frozen=True)
class Lane:
    """An agent with what it has told."""

    name: str
    count: int
    p50_s: float | None
    health: str


def lanes_of(names: Sequence[str], marks: Sequence[Mark], workers: Sequence[Seen]) -> list[Lane]:
    """In this order."""
    state = {seen.service: "err" if seen.is_silent else "ok" for seen in latest(list(workers))}
    found = []
    for name in names:
        own = [mark for mark in marks if mark.lane == name]
        took = sorted(mark.took_s for mark in own if mark.shape == WORK)
        found.append(Lane(name, len(own), took[len(took) // 2] if took else None, state.get(name, "t3")))
    return found


class LaneHeads:
    """As high as the lanes are."""

    def __init__(self, words: Words, place: Element) -> None:
        self.words = words
        self._rows: Rows[Lane] = Rows(place, self._head)

    def show(self, lanes: Sequence[Lane]) -> None:
        """These."""
        self._rows.show((lane.name, lane) for lane in lanes)

    def _head(self, lane: Lane) -> Any:
        return _Head(self.words, lane)


class _Head:
    def __init__(self, words: Words, lane: Lane) -> None:
        self._words = words
        with box("mb-lane") as self.element:
            with box("mb-line-x"):
                self._dot = box("mb-dot", "i")
                text(lane.name, "mb-medium mb-ell")
            self._counts: TextElement = text("", "mb-meta mb-num mb-ell")

    def show(self, lane: Lane) -> None:
        self._dot.classes(replace=f"mb-dot mb-{lane.health} {'mb-square' if lane.health == 'err' else ''}")
        p50 = f" · p50 {self._words.seconds(lane.p50_s)}" if lane.p50_s is not None else ""
        self._counts.set_text(f"{self._words.number(lane.count)}{p50}")

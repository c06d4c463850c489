"""The timeline as rows, for screen readers and phones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nicegui import ui

from bus_schema.timeline import TimelineEvent
from gateway.display_names import DisplayNames
from gateway.ui.components import box, clickable, moment, text, update
from gateway.ui.i18n import Localizer
from gateway.ui.rows import Rows
from gateway.ui.timeline.marks import ASK, FAILURE, EventMark, name_of, summary_of

MOST_ROWS = 200
_ROW_PX = 54
_THREADS = 7
_GAP_PX = 14
_LEFT_PX = 18


@dataclass(frozen=True)
class _Shown:
    mark: EventMark
    thread: int
    is_selected: bool


class EventList:
    """Rows in ascending time."""

    def __init__(
        self, i18n: Localizer, names: DisplayNames, choose: Callable[[str | None], Any], *, is_phone: bool
    ) -> None:
        self.i18n, self._choose, self._is_phone = i18n, choose, is_phone
        with box("mb-listing" + (" mb-threads" if is_phone else "")) as self.element:
            if is_phone:
                self._overview = ui.html("", sanitize=False).classes("mb-overview")
            self._threads = ui.html("", sanitize=False).classes("mb-thread-lines")
            self._rows: Rows[_Shown] = Rows(box("mb-listing-rows"), lambda row: _Row(i18n, names, row, choose))

    def show(
        self,
        marks: Sequence[EventMark],
        counts: Sequence[tuple[datetime, int]],
        selected: str | None,
        links: Sequence[tuple[str, str]],
    ) -> None:
        """List the latest marks below the numbers of all events by slot of time."""
        marks = sorted(marks, key=lambda mark: (mark.event.time, mark.event.sequence or 0))[-MOST_ROWS:]
        lanes = list(dict.fromkeys(mark.lane for mark in reversed(marks)))
        threads = {lane: min(place, _THREADS - 1) for place, lane in enumerate(sorted(lanes[:_THREADS]))}
        shown = [_Shown(mark, threads.get(mark.lane, _THREADS - 1), mark.event.event_id == selected) for mark in marks]
        self._rows.show((one.mark.event.event_id, one) for one in shown)
        if self._is_phone:
            self._threads.set_content(threads_of(shown, links))
            since = marks[0].event.time if marks else None
            self._overview.set_content(overview_of(self.i18n, counts, since))


class _Row:
    def __init__(
        self, i18n: Localizer, names: DisplayNames, shown: _Shown, choose: Callable[[str | None], Any]
    ) -> None:
        event: TimelineEvent = shown.mark.event
        with clickable("mb-event-row", lambda: choose(event.event_id), data_row=event.event_id) as self.element:
            box("mb-dot mb-event-dot", "i").style(f"color: var(--{event.topic})")
            with box("mb-event-text"):
                text(name_of(event.envelope), "mb-event-name mb-ell")
                with box("mb-event-about mb-ell"):
                    text(event.envelope.service, "mb-event-lane").style(f"color: var(--{event.topic})")
                    about = summary_of(i18n, names, event.envelope)
                    text(f" · {about}" if about else "", "")
            moment(i18n, event.time, i18n.time(event.time), "mb-num mb-t3 mb-event-time")

    def show(self, shown: _Shown) -> None:
        update(self.element, aria_pressed=shown.is_selected)


def threads_of(shown: Sequence[_Shown], links: Sequence[tuple[str, str]]) -> str:
    """Threads by service as SVG, with a mark for each row and the selected chain."""
    height = len(shown) * _ROW_PX
    places = {one.mark.event.event_id: (_x(one.thread), row * _ROW_PX + _ROW_PX // 2) for row, one in enumerate(shown)}
    lines = "".join(f'<path d="M{_x(thread)} 0V{height}" stroke="var(--line)"/>' for thread in range(_THREADS))
    for source, target in links:
        if source in places and target in places:
            (x1, y1), (x2, y2) = places[source], places[target]
            bend = min(abs(y2 - y1) / 2, 40)
            lines += (
                f'<path d="M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}" stroke="var(--acc)" '
                'stroke-width="1.5"/>'
            )
    marks = "".join(_mark(one, *places[one.mark.event.event_id]) for one in shown)
    width = _x(_THREADS - 1) + _LEFT_PX
    return f'<svg width="{width}" height="{height}" fill="none" aria-hidden="true">{lines}{marks}</svg>'


def overview_of(i18n: Localizer, counts: Sequence[tuple[datetime, int]], listed_since: datetime | None) -> str:
    """Histogram of events over time; the listed part is highlighted."""
    if not counts or listed_since is None:
        return ""
    starts = [start for start, _ in counts]
    most = max(number for _, number in counts)
    bars = "".join(
        _bar(place, number / most, is_listed=end is None or end > listed_since)
        for place, ((_, number), end) in enumerate(zip(counts, [*starts[1:], None], strict=True))
    )
    told = i18n.time if i18n.hour(starts[0]) == i18n.hour(starts[-1]) else i18n.hour
    return (
        f'<svg viewBox="0 0 {len(counts) * 6} 37" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'
        f"<div><span>{told(starts[0])}</span><span>{told(starts[-1])}</span></div>"
    )


def _bar(place: int, part: float, *, is_listed: bool) -> str:
    height, colour = 34 * part + 1, "acc" if is_listed else "line2"
    return (
        f'<rect x="{place * 6}" y="{37 - height:.1f}" width="4" height="{height:.1f}" rx="1" fill="var(--{colour})"/>'
    )


def _mark(one: _Shown, x: int, y: int) -> str:
    colour = f"var(--{one.mark.event.topic})"
    ring = (
        f'<circle cx="{x}" cy="{y}" r="9" fill="var(--bg0)" stroke="var(--acc)" stroke-width="2"/>'
        if one.is_selected
        else ""
    )
    if one.mark.shape == FAILURE:
        return f'{ring}<path d="M{x - 4} {y - 4}l8 8m0-8l-8 8" stroke="var(--err)" stroke-width="2"/>'
    if one.mark.shape == ASK:
        return f'{ring}<path d="M{x} {y - 6}l6 6-6 6-6-6z" fill="var(--bg0)" stroke="{colour}" stroke-width="1.6"/>'
    return f'{ring}<circle cx="{x}" cy="{y}" r="5.5" fill="{colour}"/>'


def _x(thread: int) -> int:
    return _LEFT_PX + thread * _GAP_PX

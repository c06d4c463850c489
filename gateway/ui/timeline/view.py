"""The timeline as a chart, or as its twin, the table; on a phone only the latter."""

from collections.abc import Callable, Sequence
from typing import Any

from nicegui.element import Element

from gateway.ui.page_session import PageSession
from gateway.ui.timeline.chart import TimelineChart
from gateway.ui.timeline.event_list import EventList
from gateway.ui.timeline.filters import TimelineFilters
from gateway.ui.timeline.marks import EventMark, TimelineMarks


class TimelineView:
    """Shows what has been read, whichever way."""

    def __init__(self, session: PageSession, place: Element, reading: TimelineMarks, range_s: int) -> None:
        self.session, self._place, self.reading, self._range_s = session, place, reading, range_s
        self._chart: TimelineChart | None = None
        self._listing: EventList | None = None
        self.is_table = session.viewer.is_phone or session.query.get("view") == "table"
        self.choose: Callable[[str | None], Any] = lambda _event: None
        self.see: Callable[[str, bool], Any] = lambda _zoom, _is_at_edge: None

    def open(self) -> None:
        """Draw it, empty yet."""
        self._place.classes(add="" if self.is_table else "mb-has-chart", remove="mb-has-chart" if self.is_table else "")
        for old in (self._chart, self._listing):
            if old is not None:
                old.delete()
        self._chart = self._listing = None
        session = self.session
        with self._place:
            if self.is_table:
                self._listing = EventList(session.i18n, self._place, self.choose, is_phone=session.viewer.is_phone)
            else:
                self._chart = TimelineChart(session.viewer, session.query.get("zoom", ""), self.see)

    def turn(self) -> None:
        """The other way."""
        self.is_table = not self.is_table
        self.session.remember(view="table" if self.is_table else None)
        self.open()

    def show(self, filters: TimelineFilters, selected: str | None, links: Sequence[tuple[str, str]]) -> None:
        """All marks anew."""
        if self._chart is not None:
            self._chart.show(self.reading, self._range_s, filters.hidden, self.session.backend.feed.workers)
        if self._listing is not None:
            shown = [mark for mark in self.reading.marks.values() if filters.shows(mark)]
            self._listing.show(shown, selected, links)

    def add(self, fresh: Sequence[EventMark]) -> bool:
        """Some more marks; whether it could, else all are to be shown anew."""
        if self._chart is None or self._chart.lanes != self.reading.lanes():
            return False
        self._chart.add(fresh)
        self._chart.show_heads(self.reading, self.session.backend.feed.workers)
        return True

    def move(self) -> None:
        """Time has gone on."""
        if self._chart is not None:
            self._chart.move()

    def zoom(self, factor: float) -> None:
        """Nearer, farther; all of it with 0."""
        if self._chart is not None:
            self._chart.zoom(factor)

    def watch(self) -> None:
        """A table keeps to its end while it grows."""
        if self._listing is not None:
            self._listing.watch()

    def select(
        self, filters: TimelineFilters, selected: str | None, chain: Sequence[str], links: Sequence[tuple[str, str]]
    ) -> None:
        """Show the chain of one event."""
        if self._chart is not None:
            self._chart.select(selected, chain, links, self.reading)
            return
        self.show(filters, selected, links)
        if selected and self._listing is not None and self.session.viewer.is_phone:
            self._listing.reveal(selected)

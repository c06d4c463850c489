"""The events that a timeline screen has read: numbers of all in its range, the newest, a window's, the failures."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Self

from bus_schema.timeline import GetTimeline, GetTimelineBuckets, TimelineEvent
from gateway.timeline_tail import sequence_of
from gateway.ui.page_session import PageSession
from gateway.ui.sections import EXPECTED_ERRORS, LatestReading
from gateway.ui.timeline.counts import EPOCH, TimelineCounts
from gateway.ui.timeline.filters import TimelineFilters
from gateway.ui.timeline.marks import EventMark, TimelineMarks, lane_order
from gateway.ui.timeline.ranges import TimelineRange

# More than so many marks in one window cannot be told apart, and take a browser long to draw.
MOST_MARKS = 2000
_PAGE = 500
# As many as the table lists; of a range with more of them the chart shows numbers at first.
_NEWEST = 200
_MOST_KEPT = 5000
_MOST_FAILURES = 200
_MOST_TOPICS = 20
# Bars of the overview.
_SLOTS = 110
_CELLS = 120
_AROUND = timedelta(hours=1)
_MAX_PAGES_AROUND = 4
_KEPT_BEYOND = timedelta(minutes=1)
# A window of so much of the range is shown by the slots of the range.
_NEARLY_ALL = 0.9


class TimelineEvents:
    """Marks of the newest events, which grow with every event heard, of failures, and of the window looked at."""

    def __init__(self, session: PageSession, filters: TimelineFilters, shown: TimelineRange) -> None:
        self._session, self.filters, self.range = session, filters, shown
        self.newest, self.failures, self.window, self.around = (TimelineMarks(filters.group) for _ in range(4))
        self.counts = TimelineCounts(shown.start, shown.end, _SLOTS)
        # In finer slots, those of a window with more events than can be shown as marks.
        self.detail: TimelineCounts | None = None
        # The times of which every shown event is a mark: `newest` from then on, `window` between these.
        self.complete_since = EPOCH
        self.window_span: tuple[datetime, datetime] | None = None
        self._looks = LatestReading()
        self.is_read = self._has_failures = False

    @classmethod
    async def begin(cls, session: PageSession) -> Self:
        """Those of a page that opens: read while its browser loads the scripts, unless storage fails."""
        session.listen()
        shown = TimelineRange.of_address(session.query) or await range_of(session)
        events = cls(session, TimelineFilters(session), shown)
        with suppress(*EXPECTED_ERRORS):
            await events.read()
            await events.read_failures()
        return events

    async def read(self) -> None:
        """Read numbers of the whole range and its newest events. Raises ReplyError, BusUnavailable."""
        counts = TimelineCounts(self.range.start, self.range.end, _SLOTS)
        newest = GetTimeline(
            since=counts.since, until=self.range.until, limit=_NEWEST, newest_first=True, **self._conditions
        )
        events, is_all = await self._session.read_timeline(newest, 1)
        # Those recorded later are heard, and counted then.
        await self._count(counts, through=sequence_of(events[-1]) if events else 0)
        self.counts, self.detail, self.window_span = counts, None, None
        self.newest.read(events)
        self.complete_since = EPOCH if is_all else events[0].time
        if self.filters.hidden:
            await self.read_topics()
        self.is_read, self._has_failures = True, False

    async def read_topics(self) -> None:
        """Read the newest events of the shown topics, where those of others may have displaced them.

        Raises ReplyError, BusUnavailable.
        """
        self.window_span = None
        if self.complete_since == EPOCH:
            return
        events, is_all = await self._read(self._range_query(), 1)
        self.newest.read(events)
        self.complete_since = EPOCH if is_all else events[0].time

    async def read_failures(self) -> bool:
        """Read the latest failures once, where the newest events leave some out; True if there are some.

        Raises ReplyError, BusUnavailable.
        """
        if self._has_failures:
            return False
        known = sum(mark.is_failure for mark in self.newest.marks.values())
        if self.complete_since == EPOCH or self.counts.failures <= known:
            return False
        query = self._range_query().model_copy(update={"failures_only": True, "limit": _MOST_FAILURES})
        events, _ = await self._read(query, 1)
        self._has_failures = True
        return bool(self.failures.read(events))

    async def look(self, since: datetime, until: datetime) -> bool:
        """Read the events of a window, or their numbers where they are many; False if nothing new is known."""
        is_latest, number = self._looks.begin(), self.counts.between(since, until, self.filters.hidden)
        is_shown = (
            until - since >= self.range.span * _NEARLY_ALL if number > MOST_MARKS else self._is_complete(since, until)
        )
        if is_shown:
            return False
        if number <= MOST_MARKS:
            query = self._range_query().model_copy(update={"since": since, "until": until})
            events, is_all = await self._read(query, MOST_MARKS // _PAGE)
            if is_latest():
                self.window, self.window_span = (
                    TimelineMarks(self.filters.group),
                    (since if is_all else events[0].time, until),
                )
                self.window.read(events)
        else:
            detail = TimelineCounts(since, until, _CELLS)
            await self._count(detail)
            if is_latest():
                self.detail = detail
        return is_latest()

    async def find(self, event_id: str) -> EventMark | None:
        """The mark of an event, read if need be."""
        for marks in (self.newest, self.window, self.failures, self.around):
            if (mark := marks.marks.get(event_id)) is not None:
                return mark
        events, _ = await self._read(GetTimeline(event_id=event_id, limit=1), 1)
        self.around.read(events)
        return self.around.marks.get(event_id)

    async def related(self, event: TimelineEvent) -> list[TimelineEvent]:
        """Events of its trace within an hour, and all that are marks."""
        around = [event]
        if event.trace_id is not None:
            since, until = event.time - _AROUND, event.time + _AROUND
            query = GetTimeline(since=since, until=until, trace_id=event.trace_id, limit=_PAGE)
            around, _ = await self._read(query, _MAX_PAGES_AROUND)
        # Those that are in no range that is shown can be chosen from the chain, too.
        self.around.read(around)
        return around + [mark.event for mark in self.marks() if mark.event.event_id not in self.around.marks]

    def hear(self, events: Iterable[TimelineEvent]) -> list[EventMark]:
        """Marks of the events that are new."""
        fresh = self.newest.read(events)
        for mark in fresh:
            for counts in (self.counts, self.detail):
                if counts is not None:
                    counts.add(mark.event)
        return fresh

    def forget(self) -> None:
        """Drop what has left the range."""
        before = self.range.start - _KEPT_BEYOND
        self.newest.forget(before)
        self.counts.forget(before)
        if oldest := self.newest.trim(_MOST_KEPT):
            self.complete_since = max(self.complete_since, oldest)

    def marks(self) -> Iterator[EventMark]:
        """All that are drawn, each once."""
        return iter((self.window.marks | self.failures.marks | self.newest.marks).values())

    def lanes(self) -> list[str]:
        """Services in the order of the work's flow; traces, the latest first."""
        if self.filters.group == "trace":
            latest = {mark.lane: mark for mark in sorted(self.marks(), key=lambda mark: mark.event.time)}
            return sorted(latest, key=lambda lane: latest[lane].event.time, reverse=True)
        return sorted(self.counts.by_service().keys() | {mark.lane for mark in self.marks()}, key=lane_order)

    def sizes(self) -> Counter[str]:
        """Numbers of events by lane: of services all, of traces those that are marks."""
        is_service = self.filters.group == "service"
        return self.counts.by_service() if is_service else Counter(mark.lane for mark in self.marks())

    def covered(self) -> list[tuple[float, float | None]]:
        """Times of which every event is a mark, in milliseconds since 1970; None: up to now."""
        spans: list[tuple[float, float | None]] = [(self.complete_since.timestamp() * 1000, None)]
        if self.window_span is not None:
            since, until = self.window_span
            spans.append((since.timestamp() * 1000, until.timestamp() * 1000))
        return spans

    @property
    def _conditions(self) -> dict[str, Any]:
        return {"user_id": self.filters.user, "trace_id": self.filters.trace}

    def _range_query(self) -> GetTimeline:
        shown = tuple(topic for topic in self.counts.by_topic() if topic not in self.filters.hidden)
        topics = shown if self.filters.hidden and len(shown) <= _MOST_TOPICS else ()
        query = GetTimeline(
            since=self.counts.since, until=self.range.until, limit=_PAGE, newest_first=True, **self._conditions
        )
        return query.model_copy(update={"topics": topics})

    def _is_complete(self, since: datetime, until: datetime) -> bool:
        if since >= self.complete_since:
            return True
        if self.window_span is None or since < self.window_span[0]:
            return False
        return until <= self.window_span[1] or self.complete_since <= self.window_span[1]

    async def _read(self, query: GetTimeline, max_pages: int) -> tuple[list[TimelineEvent], bool]:
        return await self._session.backend.tail.read(query, max_pages)

    async def _count(self, counts: TimelineCounts, through: int | None = None) -> None:
        span = {"since": counts.since, "until": counts.until, "buckets": counts.slots, "through": through}
        query = GetTimelineBuckets.model_validate(span | self._conditions)
        counts.read((await self._session.backend.counted(query)).series)


async def range_of(session: PageSession) -> TimelineRange:
    """The range that has the linked event, else the latest ones: a timeline with events never looks empty."""
    query = {"event_id": session.query.get("event"), "trace_id": session.query.get("trace")}
    user = session.backend.names.resolve(session.query.get("user", ""))
    try:
        latest = GetTimeline.model_validate({**query, "user_id": user, "limit": 1, "newest_first": True})
        events = (await session.backend.query(latest)).items
    except EXPECTED_ERRORS:
        # The screen says so itself, and goes on trying.
        events = ()
    return TimelineRange.that_has(events[0].time if events else None)

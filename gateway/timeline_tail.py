"""The end of the timeline, read once for all followers."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from bus_schema.envelope import Envelope
from bus_schema.replies import Code
from bus_schema.timeline import GetTimeline, TimelineEvent, TimelinePage, is_failure
from gateway.event_feed import EventFeed, Listener
from mindbus.errors import BusUnavailable, Rejected, ReplyError
from mindbus.logs import logger

ReadTimeline = Callable[[GetTimeline], Awaitable[TimelinePage]]
T = TypeVar("T")

_MAX_RECENT = 1000
_PAGE = 200
_MAX_DIGITS = 18
_RETRY_AFTER_S = 1.0
# An event is published before the tracker has saved it: poll soon, then less and less often, then give up on it.
_FIRST_POLL_S, _SLOWEST_POLL_S, _SAVED_WITHIN_S = 0.1, 1.0, 30.0
# Events published while the gateway's connection was lost wake nobody.
_POLL_EVERY_S = 5.0
_UNKNOWN = -1


class UnknownCursor(Rejected, code=Code.NOT_FOUND):
    """The timeline has no such place, or none any more: begin without a cursor."""


class TimelineTail:
    """Polls the end of the timeline while it has followers, once for all of them."""

    def __init__(self, read: ReadTimeline, feed: EventFeed) -> None:
        self._page, self._feed = read, feed
        self._recent: deque[TimelineEvent] = deque()
        # `_recent` has all events between these two sequence numbers.
        self._after = self._reached = _UNKNOWN
        self._grown = asyncio.Event()
        self._followers = 0
        self._has_followers = asyncio.Event()
        # Published but not yet saved: loop time of publication, by event id.
        self._awaited: dict[str, float] = {}
        self._poll_s = _FIRST_POLL_S

    async def start_cursor(self, cursor: str | None) -> str:
        """The cursor to follow from: the given one, else that of the last event.

        Raises UnknownCursor, ReplyError, BusUnavailable.
        """
        if cursor is None:
            return str(self._reached if self._reached != _UNKNOWN else await self._end())
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _MAX_DIGITS):
            raise UnknownCursor
        # A cursor of another timeline may lie beyond the end: events before it would be missed.
        if int(cursor) > self._reached and not await self._reaches(int(cursor)):
            raise UnknownCursor
        return cursor

    async def read(self, query: GetTimeline, max_pages: int) -> tuple[list[TimelineEvent], bool]:
        """Events of at most so many pages, the oldest first; and whether these are all.

        Raises ReplyError, BusUnavailable.
        """
        events: list[TimelineEvent] = []
        is_all = False
        while not is_all and max_pages:
            page = await self._page(query)
            events += page.items
            max_pages -= 1
            is_all = len(page.items) < query.limit or page.next_cursor is None
            query = query.model_copy(update={"cursor": page.next_cursor})
        return events[::-1] if query.newest_first else events, is_all

    async def follow(self, query: GetTimeline) -> AsyncGenerator[TimelineEvent]:
        """Every matching event after the cursor, then all that come: none missed, none twice, in order."""
        position = int(query.cursor or 0)
        with self._following():
            while True:
                grown, reached = self._grown, self._reached
                if _UNKNOWN < self._after <= position:
                    later_events = [event for event in self._recent if sequence_of(event) > position]
                    events, is_complete = [event for event in later_events if fits(query, event)], True
                else:
                    later = query.model_copy(update={"cursor": str(position), "newest_first": False})
                    page = await self._read_page(later)
                    events, is_complete = list(page.items), len(page.items) < query.limit
                    position = int(page.next_cursor or position)
                # The page was read after `reached` was: it has everything up to there.
                position = max(position, reached) if is_complete else position
                for event in events:
                    yield event
                if is_complete:
                    await grown.wait()

    @contextmanager
    def _following(self) -> Iterator[None]:
        self._followers += 1
        self._has_followers.set()
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers:
                self._has_followers.clear()

    async def run(self) -> None:
        while True:
            await self._has_followers.wait()
            with self._feed.listen() as listener:
                self._after = self._reached = await _retry(self._end)
                self._wake_followers()
                while self._has_followers.is_set():
                    page = await self._read_page(GetTimeline(cursor=str(self._reached), limit=_PAGE))
                    self._append(page.items)
                    if len(page.items) < _PAGE:
                        await self._pause(listener)
            # The next follower reads from storage first.
            self._recent.clear()
            self._awaited.clear()
            self._after = self._reached = _UNKNOWN

    def _append(self, events: Sequence[TimelineEvent]) -> None:
        for event in events:
            self._recent.append(event)
            self._reached = sequence_of(event)
            self._awaited.pop(event.event_id, None)
        while len(self._recent) > _MAX_RECENT:
            self._after = sequence_of(self._recent.popleft())
        if events:
            self._wake_followers()

    def _wake_followers(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    async def _end(self) -> int:
        """The last sequence number, 0 without events. Raises ReplyError, BusUnavailable."""
        page = await self._page(GetTimeline(limit=1, newest_first=True))
        return sequence_of(page.items[0]) if page.items else 0

    async def _reaches(self, position: int) -> bool:
        """True if an event has this sequence number or a later one, or if the position is 0."""
        return position == 0 or await self._end() >= position

    async def _read_page(self, query: GetTimeline) -> TimelinePage:
        return await _retry(lambda: self._page(query))

    async def _pause(self, listener: Listener[Envelope]) -> None:
        """Wait until there may be more: soon after a publication, else for the polling interval."""
        if not self._awaited:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_EVERY_S):
                    await listener.wait()
        now = asyncio.get_running_loop().time()
        published = {item.id if isinstance(item, Envelope) else "missed": now for item in listener.take()}
        self._awaited = {key: at for key, at in self._awaited.items() if now - at < _SAVED_WITHIN_S} | published
        self._poll_s = _FIRST_POLL_S if published else min(self._poll_s * 2, _SLOWEST_POLL_S)
        if self._awaited:
            await asyncio.sleep(self._poll_s)


def sequence_of(event: TimelineEvent) -> int:
    """The sequence number that storage has given it."""
    return event.sequence or 0


def fits(query: GetTimeline, event: TimelineEvent) -> bool:
    """True if the event meets the query, by the rules of storage."""
    return (
        query.user_id in (None, event.user_id)
        and query.trace_id in (None, event.trace_id)
        and (not query.topics or event.topic in query.topics)
        and (query.since is None or event.time >= query.since)
        and (query.until is None or event.time < query.until)
        and query.event_id in (None, event.event_id)
        and not (query.failures_only and not is_failure(event.envelope))
    )


async def _retry(read: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await read()
        except (BusUnavailable, ReplyError) as error:
            if error.code is Code.INVALID:
                raise
            logger().warning("timeline not read", reason=str(error))
        await asyncio.sleep(_RETRY_AFTER_S)

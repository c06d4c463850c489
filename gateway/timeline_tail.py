"""The end of the timeline, kept at hand for all who follow it."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from bus_schema.envelope import Envelope
from bus_schema.replies import Code
from bus_schema.timeline import GetTimeline, TimelineEvent, TimelinePage
from gateway.event_feed import EventFeed, Listener
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.tasks import end

ReadTimeline = Callable[[GetTimeline], Awaitable[TimelinePage]]


T = TypeVar("T")


_AGAIN_S = 1.0


class TimelineReader:
    """Finds what pages alone do not say. Raises what reading raises, unless it is patient."""

    def __init__(self, read: ReadTimeline) -> None:
        self._read = read

    async def end(self) -> int:
        """The last place there is, found by halving: pages go forward only."""
        low, high = 0, 1
        while (found := await self._next(high)) is not None:
            low, high = found, found * 2
        while low < high:
            middle = (low + high) // 2
            found = await self._next(middle)
            low, high = (low, middle) if found is None else (found, high)
        return low

    async def reaches(self, position: int) -> bool:
        """Whether an event is there, or behind it; at the very beginning there need not be any."""
        return position == 0 or await self._next(position - 1) is not None

    async def patient_page(self, wanted: GetTimeline) -> TimelinePage:
        """A page, however long storage is away."""
        return await _patiently(lambda: self._read(wanted))

    async def patient_end(self) -> int:
        """The same for the last place."""
        return await _patiently(self.end)

    async def _next(self, position: int) -> int | None:
        page = await self._read(GetTimeline(cursor=str(position), limit=1))
        return sequence_of(page.items[0]) if page.items else None


def sequence_of(event: TimelineEvent) -> int:
    """The place that storage has given it."""
    return event.sequence or 0


def fits(wanted: GetTimeline, event: TimelineEvent) -> bool:
    """Whether it is among what is asked for, as storage decides it."""
    return (
        wanted.user_id in (None, event.user_id)
        and wanted.trace_id in (None, event.trace_id)
        and (not wanted.topics or event.topic in wanted.topics)
        and (wanted.since is None or event.time >= wanted.since)
        and (wanted.until is None or event.time < wanted.until)
    )


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await ask()
        except (BusUnavailable, ReplyError) as away:
            if isinstance(away, ReplyError) and away.code is Code.INVALID:
                raise
            logger().warning("timeline not read", reason=str(away))
        await asyncio.sleep(_AGAIN_S)


_KEPT = 1000
_TAIL_PAGE = 200
_DIGITS = 18
# An event is heard of before the tracker has saved it: look soon, then ever more patiently, then no more.
_SOON_S, _PATIENT_S, _SAVED_WITHIN_S = 0.1, 1.0, 30.0
# What was told while the gateway's connection was lost has woken nobody.
_LOOK_EVERY_S = 5.0
_UNKNOWN = -1


class UnknownCursor(Exception):
    """The timeline has no such place, or none any more: begin without a cursor."""


class TimelineTail:
    """Reads on at the end of the timeline while anybody follows it, once for all of them."""

    def __init__(self, read: ReadTimeline, feed: EventFeed) -> None:
        self._reader, self._feed = TimelineReader(read), feed
        self._recent: deque[TimelineEvent] = deque()
        # `_recent` has all events between these two places.
        self._after = self._reached = _UNKNOWN
        self._grown = asyncio.Event()
        self._followers = 0
        self._wanted = asyncio.Event()
        # Told, not yet found: when each was heard of, by id.
        self._awaited: dict[str, float] = {}
        self._patience_s = _SOON_S
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Be ready for followers."""
        self._watching = asyncio.create_task(self._watch_for_ever(), name="timeline tail")

    async def stop(self) -> None:
        """ReadTimeline on no more."""
        if self._watching is not None:
            await end(self._watching)

    async def place(self, cursor: str | None) -> str:
        """Where to follow from: after a cursor, else after all that has happened.

        Raises UnknownCursor, ReplyError, BusUnavailable.
        """
        if cursor is None:
            return str(self._reached if self._reached != _UNKNOWN else await self._reader.end())
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _DIGITS):
            raise UnknownCursor(UnknownCursor.__doc__)
        # Of another timeline than this one: whoever waited behind the end would miss what comes before it.
        if int(cursor) > self._reached and not await self._reader.reaches(int(cursor)):
            raise UnknownCursor(UnknownCursor.__doc__)
        return cursor

    async def follow(self, wanted: GetTimeline) -> AsyncGenerator[TimelineEvent]:
        """Every event that fits from the cursor on, then all that come: none missed, none twice, in order."""
        position = int(wanted.cursor or 0)
        with self._following():
            while True:
                grown, reached = self._grown, self._reached
                if _UNKNOWN < self._after <= position:
                    rest = [event for event in self._recent if sequence_of(event) > position]
                    found, is_all = [event for event in rest if fits(wanted, event)], True
                else:
                    page = await self._reader.patient_page(wanted.model_copy(update={"cursor": str(position)}))
                    found, is_all = list(page.items), len(page.items) < wanted.limit
                    position = int(page.next_cursor or position)
                # Asked after that place was reached, storage has told of all before it, too.
                position = max(position, reached) if is_all else position
                for event in found:
                    yield event
                if is_all:
                    await grown.wait()

    @contextmanager
    def _following(self) -> Iterator[None]:
        self._followers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers:
                self._wanted.clear()

    async def _watch_for_ever(self) -> None:
        while True:
            await self._wanted.wait()
            with self._feed.listen() as news:
                self._after = self._reached = await self._reader.patient_end()
                self._wake()
                while self._wanted.is_set():
                    page = await self._reader.patient_page(GetTimeline(cursor=str(self._reached), limit=_TAIL_PAGE))
                    self._take(page.items)
                    if len(page.items) < _TAIL_PAGE:
                        await self._pause(news)
            # Whoever follows next asks storage first.
            self._recent.clear()
            self._awaited.clear()
            self._after = self._reached = _UNKNOWN

    def _take(self, events: Sequence[TimelineEvent]) -> None:
        for event in events:
            self._recent.append(event)
            self._reached = sequence_of(event)
            self._awaited.pop(event.event_id, None)
        while len(self._recent) > _KEPT:
            self._after = sequence_of(self._recent.popleft())
        if events:
            self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    async def _pause(self, news: Listener[Envelope]) -> None:
        """Until there may be more: soon after something was told, now and then in any case."""
        if not self._awaited:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await news.some()
        now = asyncio.get_running_loop().time()
        told = {item.id if isinstance(item, Envelope) else "missed": now for item in news.taken()}
        self._awaited = {key: at for key, at in self._awaited.items() if now - at < _SAVED_WITHIN_S} | told
        self._patience_s = _SOON_S if told else min(self._patience_s * 2, _PATIENT_S)
        if self._awaited:
            await asyncio.sleep(self._patience_s)

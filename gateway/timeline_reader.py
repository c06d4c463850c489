"""Questions to storage about the timeline."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bus_schema.replies import Code
from bus_schema.timeline import GetTimeline, TimelineEvent, TimelinePage
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger

Read = Callable[[GetTimeline], Awaitable[TimelinePage]]
T = TypeVar("T")
_AGAIN_S = 1.0


class TimelineReader:
    """Finds what pages alone do not say. Raises what reading raises, unless it is patient."""

    def __init__(self, read: Read) -> None:
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

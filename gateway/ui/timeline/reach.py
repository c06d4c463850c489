"""Reads from storage as much of the timeline as a screen shows."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bus_schema.timeline import GetTimeline, TimelineEvent
from gateway.backend import Backend

_PAGE = 500
_MOST_PAGES = 20
MOST_EVENTS = _PAGE * _MOST_PAGES
_AROUND = timedelta(hours=1)


async def events_since(
    backend: Backend, since: datetime, user_id: str | None, trace_id: str | None
) -> tuple[list[TimelineEvent], bool]:
    """All that happened since, in order; whether that is all."""
    wanted = GetTimeline(since=since, user_id=user_id, trace_id=trace_id, limit=_PAGE)
    return await _read(backend, wanted, _MOST_PAGES)


async def events_around(backend: Backend, event: TimelineEvent) -> Sequence[TimelineEvent]:
    """What else happened in its trace, some time before and after."""
    if event.trace_id is None:
        return [event]
    wanted = GetTimeline(since=event.time - _AROUND, until=event.time + _AROUND, trace_id=event.trace_id, limit=_PAGE)
    found, _ = await _read(backend, wanted, 4)
    return found


async def _read(backend: Backend, wanted: GetTimeline, most_pages: int) -> tuple[list[TimelineEvent], bool]:
    found: list[TimelineEvent] = []
    for _ in range(most_pages):
        page = await backend.timeline(wanted)
        found += page.items
        if len(page.items) < wanted.limit or page.next_cursor is None:
            return found, True
        wanted = wanted.model_copy(update={"cursor": page.next_cursor})
    return found, False

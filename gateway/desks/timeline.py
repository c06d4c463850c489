"""What has happened, what happens."""

from collections.abc import AsyncGenerator

from bus_schema.timeline import GetTimeline, TimelineEvent, TimelinePage
from gateway.timeline_tail import TimelineTail
from mindbus.bus.client import Client


class TimelineDesk:
    """Reads the timeline, follows it."""

    bus: Client
    tail: TimelineTail

    async def timeline(self, wanted: GetTimeline) -> TimelinePage:
        """A page in the order in which events were recorded; the cursor of the last goes on with what comes."""
        return await self.bus.request(wanted)

    async def place(self, cursor: str | None = None) -> str:
        """The cursor to follow from: one given out before, else that of now. Raises NoSuchPlace."""
        return await self.tail.place(cursor)

    def follow(self, wanted: GetTimeline) -> AsyncGenerator[TimelineEvent]:
        """A timeline that never ends, from a cursor that `place` has given, else from its beginning."""
        return self.tail.follow(wanted)

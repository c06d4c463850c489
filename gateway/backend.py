"""The gateway's connections: bus client, artifact store, event feed, timeline tail, shared memory."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel

from bus_schema.messages import Command
from config.settings import FleetSettings
from gateway.event_feed import EventFeed
from gateway.shared_memory import MemoryChangeListener, SharedMemories
from gateway.timeline_tail import TimelineTail
from mindbus.bus.client import Client
from mindbus.bus.connection import find_broker
from mindbus.bus.worker import utc_now
from mindbus.management import QueueState, open_management
from mindbus.sdk.artifacts import open_artifacts
from mindbus.tasks import running

LOCAL_USER = "user.local"
QUEUE_PREFIX, DEAD_SUFFIX = "mb.q.", ".dead"
# Nobody waits longer at a screen.
QUERY_TIMEOUT_S = 10.0

ResultT = TypeVar("ResultT", bound=BaseModel)


class Backend:
    """Shared by all endpoints and screens of one gateway; it acts as LOCAL_USER, in dialogues as their users."""

    def __init__(self, bus: Client, settings: FleetSettings, clock: Callable[[], datetime] = utc_now) -> None:
        self.bus, self.settings, self.clock = bus.acting_as(LOCAL_USER), settings, clock
        self.artifacts = open_artifacts(self.bus, settings, clock)
        self.feed = EventFeed(self.bus, settings.heartbeat_s, clock)
        self.tail = TimelineTail(self.bus.request, self.feed)
        self.memories = SharedMemories(self.bus)
        self._memory_listener = MemoryChangeListener(self.feed, self.memories.changes)

    async def query(self, command: Command[ResultT], timeout_s: float = QUERY_TIMEOUT_S) -> ResultT:
        """Result of a command to a memory service. Raises ReplyError, BusUnavailable."""
        return await self.bus.request(command, timeout_s=timeout_s)

    async def queues(self, prefix: str = "mb.") -> list[QueueState]:
        """All queues whose names begin so. Raises ManagementUnavailable."""
        return await open_management(self.settings, find_broker(self.settings)).queues(prefix)

    async def dead_letter_counts(self) -> dict[str, int]:
        """Number of dead letters by service, of every service that can have some. Raises ManagementUnavailable."""
        return {
            queue.name.removeprefix(QUEUE_PREFIX).removesuffix(DEAD_SUFFIX): queue.depth
            for queue in await self.queues(QUEUE_PREFIX)
            if queue.name.endswith(DEAD_SUFFIX)
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connected for the time of a block. Raises BusUnavailable."""
        async with self.feed.receiving(), AsyncExitStack() as stack:
            await self.artifacts.start()
            stack.push_async_callback(self.artifacts.stop)
            await stack.enter_async_context(running(self.tail.run(), "timeline tail"))
            await stack.enter_async_context(running(self._memory_listener.run(), "memory changes"))
            yield


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


# Parameters of endpoints.
BackendDependency = Annotated[Backend, Depends(_backend)]
Cursor = Annotated[str | None, Query(max_length=256)]

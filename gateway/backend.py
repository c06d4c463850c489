"""Everything that a screen or an endpoint may do."""

from collections.abc import Callable
from datetime import datetime
from typing import Self

from gateway.desks.artifacts import ArtifactDesk
from gateway.desks.dialogues import DialogueDesk
from gateway.desks.episodes import EpisodesDesk
from gateway.desks.fleet import FleetDesk
from gateway.desks.runs import RunDesk
from gateway.desks.sim import SimDesk
from gateway.desks.timeline import TimelineDesk
from gateway.event_feed import EventFeed
from gateway.memory_changes import MemoryChangeListener
from gateway.shared_memory import MemoryDesk, SharedMemories
from gateway.timeline_tail import TimelineTail
from mindbus.bus.client import Client
from mindbus.bus.worker import utc_now
from mindbus.sdk.artifacts import open_artifacts
from mindbus.settings import Settings

LOCAL_USER = "user.local"


class Backend(DialogueDesk, TimelineDesk, RunDesk, ArtifactDesk, MemoryDesk, EpisodesDesk, FleetDesk, SimDesk):
    """The gateway's part on the bus, made of the desks; messages are said as their user, all else asked as one.

    What it raises is what `gateway.problems` knows.
    """

    def __init__(self, bus: Client, settings: Settings, clock: Callable[[], datetime] = utc_now) -> None:
        self.bus, self.settings, self.clock = bus.acting_as(LOCAL_USER), settings, clock
        self.shelf = open_artifacts(self.bus, settings, clock)
        self.feed = EventFeed(self.bus, settings.heartbeat_s, clock)
        self.tail = TimelineTail(self.timeline, self.feed)
        self._memories = SharedMemories(self.bus)
        self._memory_ear = MemoryChangeListener(self.feed, self._memories.changes)

    async def start(self) -> None:
        """Listen."""
        await self.feed.start()
        await self.shelf.start()
        self.tail.start()
        self._memory_ear.start()

    async def stop(self) -> None:
        """Listen no more."""
        await self._memory_ear.stop()
        await self.tail.stop()
        await self.shelf.stop()
        await self.feed.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

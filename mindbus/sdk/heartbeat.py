"""Hears whether storage is alive."""

import asyncio

from bus_schema.fleet import Heartbeat
from mindbus.bus.client import Client
from mindbus.tasks import end

_STORAGE = "storage"


class StorageHeartbeat:
    """Wakes those who wait for storage."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self._beat = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen from now on, as soon as the bus is there."""
        self._listening = asyncio.create_task(self._listen(), name="storage heartbeat")

    async def stop(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            await end(self._listening)

    async def next(self) -> None:
        """The next sign of life."""
        await self._beat.wait()

    async def _listen(self) -> None:
        async with self._bus.subscribe(Heartbeat) as heartbeats:
            async for heartbeat in heartbeats:
                if heartbeat.service == _STORAGE and heartbeat.ready:
                    # Whoever waits is woken; whoever waits from now on waits for the next one.
                    self._beat.set()
                    self._beat = asyncio.Event()

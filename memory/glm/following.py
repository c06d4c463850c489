"""The index of vectors comes after the rows, commit by commit."""

import asyncio

from memory.glm.vector_relay import VectorRelay


class Following:
    """Knows how many commits there were, how many the index has heard of; one instance follows, the one that writes."""

    def __init__(self, relay: VectorRelay) -> None:
        self._relay = relay
        self._due = asyncio.Event()
        self._moved = asyncio.Condition()
        self._committed = self._carried = 0

    def wake(self) -> None:
        """Something has been committed."""
        self._committed += 1
        self._due.set()

    async def step(self) -> None:
        """Wait for a commit, then carry what waits. Raises IndexAway, DatabaseAway; the next step tries again."""
        await self._due.wait()
        known = self._committed
        await self._relay.relay()
        if self._committed == known:
            self._due.clear()
        async with self._moved:
            self._carried = known
            self._moved.notify_all()

    async def catch_up(self, within_s: float) -> bool:
        """Whether the index has, within that time, all that was committed before the call."""
        known = self._committed
        try:
            async with asyncio.timeout(within_s), self._moved:
                await self._moved.wait_for(lambda: self._carried >= known)
        except TimeoutError:
            return False
        return True

"""The index of vectors comes after the rows, commit by commit."""

import asyncio

from sqlalchemy import event

from memory.glm.vector_relay import VectorRelay
from mindbus.sql.database import Database


class Following:
    """Knows how many commits there were, how many the index has heard of; one instance follows, the one that writes."""

    def __init__(self, database: Database, relay: VectorRelay) -> None:
        self._database, self._relay = database, relay
        self._due = asyncio.Event()
        self._moved = asyncio.Condition()
        self._committed = self._carried = 0

    def after_commit(self) -> None:
        """Follow the transaction at hand once it is committed, no sooner: until then nobody else sees its notes."""
        event.listen(self._database.session.sync_session, "after_commit", self._note, once=True)

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

    def _note(self, _session: object) -> None:
        self._committed += 1
        self._due.set()

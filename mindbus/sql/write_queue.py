"""Queue of the writers of one process to a SQLite file."""

import asyncio
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import await_only

_HOLDS_TURN = "mindbus_holds_turn"


class WriteQueue:
    """Writers of one process take turns; SQLite alone would let them poll at growing intervals.

    A writer that has waited in vain tries without a turn: SQLite itself locks.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._turn = asyncio.Lock()

    def serve(self, engine: AsyncEngine) -> None:
        """End the turns of an engine's connections when they return to its pool."""
        event.listen(engine.sync_engine.pool, "checkin", self._end)

    def wait(self, connection: Connection) -> None:
        """Wait for the turn of a connection, which ends when the connection returns to the pool."""
        info = connection.connection.info
        if not info.get(_HOLDS_TURN):
            info[_HOLDS_TURN] = await_only(self.begin())

    async def begin(self) -> bool:
        """Wait for a turn; whether it has come."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._turn.acquire()
        except TimeoutError:
            return False

    def end(self, *, has_come: bool) -> None:
        """End a turn, if it has come."""
        if has_come:
            self._turn.release()

    def _end(self, _connection: Any, record: Any) -> None:
        self.end(has_come=record.info.pop(_HOLDS_TURN, False))

"""Writers to one SQLite file, one after the other."""

import asyncio
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import await_only

_HOLDS_TURN = "mindbus_holds_turn"


class WritersTurns:
    """Whoever waits is next in turn; left to itself, SQLite has them ask again and again, ever more rarely.

    It is a courtesy among those of one process: who waited in vain tries without a turn, SQLite has the last word.
    """

    def __init__(self, engine: AsyncEngine, patience_s: float) -> None:
        self._patience_s = patience_s
        self._turn = asyncio.Lock()
        event.listen(engine.sync_engine.pool, "checkin", self._end)

    def wait(self, connection: Connection) -> None:
        """Until it is this connection's turn, which ends when the connection goes back to the pool."""
        info = connection.connection.info
        if not info.get(_HOLDS_TURN):
            info[_HOLDS_TURN] = await_only(self._begin())

    async def _begin(self) -> bool:
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._turn.acquire()
        except TimeoutError:
            return False

    def _end(self, _connection: Any, record: Any) -> None:
        if record.info.pop(_HOLDS_TURN, False):
            self._turn.release()

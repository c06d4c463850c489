"""A real database behind gates."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.util import await_only

from mindbus.sql.database import Database, DatabaseAway
from mindbus.sql.inbox import SqlInbox
from tests.crashes.gates import Gates, acting

_HAS_TURN = "has turn"
_of_the_message: "ContextVar[bool]" = ContextVar("transaction of the message at hand", default=False)


def _away() -> DatabaseAway:
    return DatabaseAway("the database is away")


class Turn:
    """One transaction writes at a time, as in memory, so that nobody waits where the story cannot see it."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self) -> None:
        """Wait for it."""
        actor = acting()
        actor.awaits_another = True
        await self._lock.acquire()
        actor.awaits_another = False

    def give(self) -> None:
        """Let the next one have it."""
        self._lock.release()


class GatedDatabase(Database):
    """One process's way to the database; each reading and each transaction is an effect."""

    def __init__(self, url: str, gates: Gates, turn: Turn) -> None:
        super().__init__(url, "storage")
        self.gates, self.turn = gates, turn
        event.listen(self.engine.sync_engine, "begin", self._begin, insert=True)
        event.listen(self.engine.sync_engine.pool, "checkin", self._end)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        """As in Database."""
        await self.gates.stop_at("before select", _away)
        async with super().reading() as session:
            yield session
        await self.gates.stop_at("after select", _away)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """As in Database."""
        is_of_the_message = _of_the_message.get()
        if not is_of_the_message:
            await self.gates.stop_at("before commit", _away)
        async with super().transaction() as session:
            yield session
            if is_of_the_message:
                await self.gates.stop_at("before commit", _away)
        await self.gates.look_closely()
        await self.gates.stop_at("after commit", _away)

    def _begin(self, connection: Connection) -> None:
        info = connection.connection.info
        if not connection.get_execution_options().get("mindbus_read_only", False) and not info.get(_HAS_TURN):
            await_only(self.turn.take())
            info[_HAS_TURN] = True

    def _end(self, _connection: Any, record: Any) -> None:
        if record.info.pop(_HAS_TURN, False):
            self.turn.give()


class GatedInbox(SqlInbox):
    """The real one, whose transactions are told from those that a handler makes beside its own."""

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator[Any]:
        """As in Inbox."""
        _of_the_message.set(True)
        try:
            async with super().unit_of_work(consumer) as unit:
                _of_the_message.set(False)
                yield unit
        finally:
            _of_the_message.set(False)

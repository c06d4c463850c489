"""A real database behind gates."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.util import await_only

from mindbus.sql.database import AmbientTransaction, Database
from mindbus.sql.errors import DatabaseAway
from mindbus.sql.groups import WriteQueue
from tests.crashes.gates import Gates, acting

T = TypeVar("T")
_HAS_TURN = "has turn"


def _away() -> DatabaseAway:
    return DatabaseAway("the database is away")


class Turn:
    """One transaction, or group, writes at a time, as in memory, so that nobody waits where the story cannot see it."""

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


class GatedTurns(WriteQueue):
    """The turns of a process's groups, each of which has everybody's turn first."""

    def __init__(self, turns: WriteQueue, turn: Turn) -> None:
        super().__init__(0)
        self._turns, self._everybodys = turns, turn

    async def begin(self) -> bool:
        """As in WriteQueue."""
        await self._everybodys.take()
        try:
            return await self._turns.begin()
        except BaseException:
            self._everybodys.give()
            raise

    def end(self, *, has_come: bool) -> None:
        """As in WriteQueue."""
        self._turns.end(has_come=has_come)
        self._everybodys.give()


class GatedDatabase(Database):
    """One process's way to the database; each reading and each transaction is an effect."""

    def __init__(self, url: str, gates: Gates, turn: Turn) -> None:
        super().__init__(url, "storage")
        self.gates, self.turn = gates, turn
        event.listen(self.engine.sync_engine, "begin", self._begin, insert=True)
        event.listen(self.engine.sync_engine.pool, "checkin", self._end)
        if self.groups is not None:
            self.groups.turns = GatedTurns(self.groups.turns, turn)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        """As in Database."""
        await self.gates.stop_at("before select", _away)
        async with super().reading() as session:
            yield session
        await self.gates.stop_at("after select", _away)

    async def read(self, job: Callable[[Connection], T]) -> T:
        """As in Database; without groups it is a reading."""
        if self.groups is None:
            return await super().read(job)
        await self.gates.stop_at("before select", _away)
        result = await super().read(job)
        await self.gates.stop_at("after select", _away)
        return result

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """As in Database."""
        await self.gates.stop_at("before commit", _away)
        async with super().transaction() as session:
            yield session
        await self.gates.look_closely()
        await self.gates.stop_at("after commit", _away)

    async def write(self, job: Callable[[Connection], T]) -> T:
        """As in Database; without groups it is a transaction."""
        if self.groups is None:
            return await super().write(job)
        await self.gates.stop_at("before commit", _away)
        result = await super().write(job)
        await self.gates.look_closely()
        await self.gates.stop_at("after commit", _away)
        return result

    @asynccontextmanager
    async def at_hand(self) -> AsyncIterator[AmbientTransaction]:
        """As in Database."""
        async with super().at_hand() as transaction:
            yield transaction
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

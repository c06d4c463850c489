"""Locks and counters in the store that the settings name."""

from typing import Protocol

from memory.redis_link import RedisLink
from memory.swm.errors import CoordinationAway
from memory.swm.redis_coordination import RedisCounters, RedisLocks
from memory.swm.sql_coordination import SqlCounters, SqlLocks
from memory.swm.stores import Clock, CounterStore, LockStore
from mindbus.sql.database import Database


class CoordinationStores(Protocol):
    """Both stores, opened and closed together."""

    locks: LockStore
    counters: CounterStore

    async def open(self) -> None: ...

    async def close(self) -> None: ...


class SqlCoordination:
    """In the database of the working memory."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.locks: LockStore = SqlLocks(database, clock)
        self._counters = SqlCounters(database, clock)
        self.counters: CounterStore = self._counters

    async def open(self) -> None:
        self._counters.start()

    async def close(self) -> None:
        await self._counters.stop()


class RedisCoordination:
    """In a Redis that evicts nothing: an evicted lock would guard nothing."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._link = RedisLink(url, lambda reason: CoordinationAway(reason=reason))
        self.locks: LockStore = RedisLocks(self._link, clock)
        self.counters: CounterStore = RedisCounters(self._link)

    async def open(self) -> None:
        """Raises WrongRedis."""
        await self._link.open("locks with counters")

    async def close(self) -> None:
        await self._link.close()


def coordination_in(redis_url: str | None, database: Database, clock: Clock) -> CoordinationStores:
    """In Redis if there is a URL, else in the database."""
    return SqlCoordination(database, clock) if redis_url is None else RedisCoordination(redis_url, clock)

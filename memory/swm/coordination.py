"""Locks with counters, wherever the settings want them."""

from typing import Protocol

from memory.swm.redis_coordination import CoordinationRedis, RedisCounters, RedisLocks
from memory.swm.sql_coordination import SqlCounters, SqlLocks
from memory.swm.stores import Clock, CounterStore, LockStore
from mindbus.sql.database import Database


class CoordinationStores(Protocol):
    """Both, opened or closed together."""

    locks: LockStore
    counters: CounterStore

    async def open(self) -> None: ...

    async def close(self) -> None: ...


class SqlCoordination:
    """In the database of the working memory, which outlives any crash."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.locks: LockStore = SqlLocks(database, clock)
        self._counters = SqlCounters(database, clock)
        self.counters: CounterStore = self._counters

    async def open(self) -> None:
        """Commit from now on."""
        self._counters.start()

    async def close(self) -> None:
        """Commit no more."""
        await self._counters.stop()


class RedisCoordination:
    """In a Redis that evicts nothing."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._redis = CoordinationRedis(url)
        self.locks: LockStore = RedisLocks(self._redis, clock)
        self.counters: CounterStore = RedisCounters(self._redis)

    async def open(self) -> None:
        """Raises WrongRedis."""
        await self._redis.open()

    async def close(self) -> None:
        """Close every connection."""
        await self._redis.close()


def coordination_in(redis_url: str | None, database: Database, clock: Clock) -> CoordinationStores:
    """In Redis where there is one to be used."""
    return SqlCoordination(database, clock) if redis_url is None else RedisCoordination(redis_url, clock)

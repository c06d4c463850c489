"""The cache of the working memory: its interface, the in-process one, and the buffer in front of either."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from typing import Protocol

from bus_schema.kem import Kem
from bus_schema.kem_match import sorted_kems
from bus_schema.kem_query import KemQuery
from memory.errors import RedisAway
from memory.swm.write_queue import KemWriteQueue, QueuedWrite
from mindbus.logs import logger
from mindbus.sdk.local_memory import IndexedKems, Policy
from retrieval.cursors import PageKey

_ANY_ID = "kem_any"


class CacheAway(RedisAway):
    """The cache does not answer; start its Redis, or wait for it."""


class KemCache(Protocol):
    """Units by id, with an index on metadata; evicts what it has no room for. All methods raise CacheAway."""

    async def open(self) -> None:
        """Connect; evictions while it was closed are reported by `evicted`."""

    async def close(self) -> None: ...

    async def get(self, kem_id: str) -> Kem | None:
        """The unit, or None; counts as a use."""

    async def put(self, kem: Kem) -> None:
        """Add or replace a unit."""

    async def drop(self, kem_id: str) -> bool:
        """Remove a unit, which is not reported as evicted; True if it was there."""

    def ordered(self, query: KemQuery, after: PageKey | None = None) -> AsyncGenerator[Kem]:
        """Superset of the units that match the query after a place, in its order; read no further than asked for.

        What lies before the place may be among them. Does not count as a use.
        """

    async def touch(self, kem_ids: Collection[str]) -> None:
        """Count these units as used."""

    async def take_evicted(self) -> list[str]:
        """Ids evicted since the last call."""

    async def clear(self) -> int:
        """Remove all units; returns their number."""


class EmbeddedCache:
    """KemCache in the memory of this process."""

    def __init__(self, max_bytes: int, indexed_keys: Collection[str], policy: Policy = "lru") -> None:
        self._kems = IndexedKems(max_bytes, indexed_keys, policy)
        self._evicted: list[str] = []

    async def open(self) -> None:
        # What is left of an earlier leadership may be out of date.
        self._kems.clear()

    async def close(self) -> None: ...

    async def get(self, kem_id: str) -> Kem | None:
        return self._kems.get(kem_id)

    async def put(self, kem: Kem) -> None:
        self._evicted += self._kems.keep(kem)

    async def drop(self, kem_id: str) -> bool:
        return self._kems.pop(kem_id) is not None

    async def ordered(self, query: KemQuery, after: PageKey | None = None) -> AsyncGenerator[Kem]:
        for kem in sorted_kems(self._kems.candidates(query), query):
            yield kem

    async def touch(self, kem_ids: Collection[str]) -> None:
        for kem_id in kem_ids:
            self._kems.get(kem_id)

    async def take_evicted(self) -> list[str]:
        evicted, self._evicted = self._evicted, []
        return evicted

    async def clear(self) -> int:
        return self._kems.clear()


class BufferedCache:
    """Cache whose writes wait in the database while it is away; until it has them all, it is not read.

    `lock` is held from reading a unit to writing it.
    """

    def __init__(self, cache: KemCache, writes: KemWriteQueue) -> None:
        self.cache, self._writes = cache, writes
        self.lock = asyncio.Lock()
        self._is_behind = False

    async def open(self) -> None:
        """Raises WrongRedis."""
        self._writes.reset()
        await self.cache.open()
        self._is_behind = await self._writes.count("cache") > 0

    async def get(self, kem_id: str) -> Kem | None:
        """Raises CacheAway."""
        self._require_current()
        return await self.cache.get(kem_id)

    async def find(self, kem_id: str) -> Kem | None:
        """The unit; None also while the cache is away."""
        try:
            return await self.get(kem_id)
        except CacheAway:
            return None

    def ordered(self, query: KemQuery, after: PageKey | None = None) -> AsyncGenerator[Kem]:
        """Raises CacheAway."""
        self._require_current()
        return self.cache.ordered(query, after)

    async def put(self, kem: Kem) -> None:
        """Add or replace a unit, now or as soon as the cache is back."""
        try:
            self._require_current()
            await self.cache.put(kem)
        except CacheAway:
            await self._queue(QueuedWrite("cache", kem.id, kem))

    async def refresh(self, kem: Kem) -> None:
        """Replace a unit if it is cached, or if the cache is away."""
        try:
            if await self.get(kem.id) is None:
                return
        except CacheAway:
            logger().debug("cache is written later", kem_id=kem.id)
        await self.put(kem)

    async def drop(self, kem_id: str) -> None:
        """Remove a unit, now or as soon as the cache is back."""
        try:
            self._require_current()
            await self.cache.drop(kem_id)
        except CacheAway:
            await self._queue(QueuedWrite("cache", kem_id))

    async def catch_up(self) -> None:
        """Apply the writes that the cache has missed. Raises CacheAway."""
        if not self._is_behind:
            return
        # Before the lock is taken: publishing must not wait for a cache that does not answer.
        await self.cache.get(_ANY_ID)
        async with self.lock:
            while writes := await self._writes.next("cache"):
                for write in writes:
                    if write.kem is None:
                        await self.cache.drop(write.kem_id)
                    else:
                        await self.cache.put(write.kem)
                await self._writes.remove([write.seq for write in writes])
            self._is_behind = False

    async def _queue(self, write: QueuedWrite) -> None:
        self._is_behind = True
        await self._writes.add([write])

    def _require_current(self) -> None:
        if self._is_behind:
            raise CacheAway

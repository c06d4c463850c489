"""Where the units at hand lie: what the working memory asks of it."""

import asyncio
from collections.abc import Collection
from typing import Protocol

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.swm.write_queue import QueuedWrite, WriteQueue
from mindbus.logs import logger
from mindbus.sdk.kem_cache import IndexedKems, Policy


class CacheAway(Exception):
    """The cache does not answer; start its Redis, or wait for it."""


class KemCache(Protocol):
    """Units by id, with an index on metadata; what it has no room for goes. All of it raises CacheAway."""

    async def open(self) -> None:
        """Be ready; what is gone since it was closed is told by `evicted`."""

    async def close(self) -> None: ...

    async def get(self, kem_id: str) -> Kem | None:
        """It counts as used."""

    async def put(self, kem: Kem) -> None:
        """Keep it in place of an older one of its id."""

    async def drop(self, kem_id: str) -> bool:
        """Whether it was there; nobody is told that it has been evicted."""

    async def candidates(self, query: KemQuery) -> list[Kem]:
        """At least all units that the question means, narrowed down as far as the indexes go."""

    async def used(self, kem_ids: Collection[str]) -> None:
        """These have been read."""

    async def evicted(self) -> list[str]:
        """The units that have had to go since it was asked last."""

    async def clear(self) -> int:
        """Drop all; how many there were."""


class EmbeddedCache:
    """A KemCache that goes with its process."""

    def __init__(self, max_bytes: int, indexed_keys: Collection[str], policy: Policy = "lru") -> None:
        self._kems = IndexedKems(max_bytes, indexed_keys, policy)
        self._evicted: list[str] = []

    async def open(self) -> None:
        """As in KemCache: whatever is left of an earlier lead may be out of date."""
        self._kems.clear()

    async def close(self) -> None:
        """Nothing to close."""

    async def get(self, kem_id: str) -> Kem | None:
        """As in KemCache."""
        return self._kems.get(kem_id)

    async def put(self, kem: Kem) -> None:
        """As in KemCache."""
        self._evicted += self._kems.keep(kem)

    async def drop(self, kem_id: str) -> bool:
        """As in KemCache."""
        return self._kems.pop(kem_id) is not None

    async def candidates(self, query: KemQuery) -> list[Kem]:
        """As in KemCache; to be looked at is not to be used."""
        return self._kems.candidates(query)

    async def used(self, kem_ids: Collection[str]) -> None:
        """As in KemCache."""
        for kem_id in kem_ids:
            self._kems.get(kem_id)

    async def evicted(self) -> list[str]:
        """As in KemCache."""
        evicted, self._evicted = self._evicted, []
        return evicted

    async def clear(self) -> int:
        """As in KemCache."""
        return self._kems.clear()


_ANY = "kem_any"


class BufferedCache:
    """Cache whose writes wait in the database while it is away; until it has them, it is not read: it is behind.

    `turn` is for whoever reads before writing.
    """

    def __init__(self, cache: KemCache, writes: WriteQueue) -> None:
        self.cache, self._writes = cache, writes
        self.turn = asyncio.Lock()
        self._is_behind = False

    async def open(self) -> None:
        """Raises WrongRedis."""
        self._writes.begin()
        await self.cache.open()
        self._is_behind = await self._writes.count("cache") > 0

    async def get(self, kem_id: str) -> Kem | None:
        """Raises CacheAway."""
        self._require_whole()
        return await self.cache.get(kem_id)

    async def find(self, kem_id: str) -> Kem | None:
        """None also where the cache is away."""
        try:
            return await self.get(kem_id)
        except CacheAway:
            return None

    async def candidates(self, query: KemQuery) -> list[Kem]:
        """Raises CacheAway."""
        self._require_whole()
        return await self.cache.candidates(query)

    async def put(self, kem: Kem) -> None:
        """Now, or as soon as the cache is back."""
        try:
            self._require_whole()
            await self.cache.put(kem)
        except CacheAway:
            await self._later(QueuedWrite("cache", kem.id, kem))

    async def renew(self, kem: Kem) -> None:
        """Put it in place of what is at hand, if it is, or if nobody can say."""
        try:
            if await self.get(kem.id) is None:
                return
        except CacheAway:
            logger().debug("cache will hear of it later", kem_id=kem.id)
        await self.put(kem)

    async def drop(self, kem_id: str) -> None:
        """The same."""
        try:
            self._require_whole()
            await self.cache.drop(kem_id)
        except CacheAway:
            await self._later(QueuedWrite("cache", kem_id))

    async def catch_up(self) -> None:
        """Give the cache what it has missed. Raises CacheAway."""
        if not self._is_behind:
            return
        # Whoever publishes must not wait for a cache that does not answer.
        await self.cache.get(_ANY)
        async with self.turn:
            while writes := await self._writes.next("cache"):
                for write in writes:
                    if write.kem is None:
                        await self.cache.drop(write.kem_id)
                    else:
                        await self.cache.put(write.kem)
                await self._writes.arrived([write.seq for write in writes])
            self._is_behind = False

    async def _later(self, write: QueuedWrite) -> None:
        self._is_behind = True
        await self._writes.add([write])

    def _require_whole(self) -> None:
        if self._is_behind:
            raise CacheAway(CacheAway.__doc__)

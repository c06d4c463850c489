"""A cache that loses no write while it is away."""

import asyncio

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.swm.cache import CacheAway, KemCache
from memory.swm.writes import Write, Writes
from mindbus.logs import logger

_ANY = "kem_any"


class Shelf:
    """Writes that the cache cannot take wait in the database; until it has them, it is not asked: it knows too little.

    `turn` is for whoever reads before writing.
    """

    def __init__(self, cache: KemCache, writes: Writes) -> None:
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
            await self._later(Write("cache", kem.id, kem))

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
            await self._later(Write("cache", kem_id))

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

    async def _later(self, write: Write) -> None:
        self._is_behind = True
        await self._writes.add([write])

    def _require_whole(self) -> None:
        if self._is_behind:
            raise CacheAway(CacheAway.__doc__)

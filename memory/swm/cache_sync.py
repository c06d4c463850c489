"""Synchronisation of the cache with the global memory, in both directions."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from bus_schema.glm import BatchItem
from bus_schema.ids import derived
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.glm.store import USER_KEY
from memory.swm.cache import BufferedCache
from memory.swm.subscriptions import KemEvent
from memory.swm.working_memory import Glm
from memory.swm.write_queue import KemWriteQueue, QueuedWrite
from mindbus.logs import logger


class CacheSync:
    """Sends queued writes to the global memory and applies its changes to the cache."""

    def __init__(self, cache: BufferedCache, writes: KemWriteQueue, glm: Glm) -> None:
        self._cache, self._writes, self._glm = cache, writes, glm
        # Writes that were sent without being answered: perhaps they are done.
        self._unanswered: set[int] = set()

    async def refill(self) -> None:
        """Cache the units of queued writes: a cache in memory starts empty."""
        for write in await self._writes.next("glm", limit=10_000):
            if write.kem is not None and await self._cache.find(write.kem_id) is None:
                await self._cache.put(write.kem)

    async def flush(self) -> list[KemEvent]:
        """Send the first queued writes; units that the global memory refuses leave the cache. Raises GlmAway.

        What was not answered is sent again as it was, so that it is recognised.
        """
        queued = await self._writes.next("glm")
        writes = [write for write in queued if write.seq in self._unanswered] or queued
        events: list[KemEvent] = []
        # Runs of consecutive writes of one publisher: the order of writes to a unit is kept.
        for publisher, batch in groupby(writes, key=lambda write: write.publisher):
            sent = list(batch)
            self._unanswered = {write.seq for write in sent}
            settled = await self._send(publisher, sent)
            self._unanswered.clear()
            events += [event for write, item in settled for event in await self._settle(write, item)]
            await self._writes.remove([write.seq for write, _ in settled])
        return events

    async def apply_change(self, kem_id: str, version: int, updated_at: datetime, *, is_new: bool) -> list[KemEvent]:
        """Apply a change event of the global memory. Raises GlmAway."""
        cached = await self._cache.find(kem_id)
        is_known = cached is not None and (cached.version, cached.updated_at) == (version, updated_at)
        if is_known or (cached is None and is_new) or await self._writes.pending([kem_id]):
            return []
        stored = await self._glm.fetch([kem_id])
        async with self._cache.lock:
            if await self._cache.find(kem_id) != cached or await self._writes.pending([kem_id]):
                # Published here meanwhile, which is newer.
                return []
            if stored:
                await self._cache.refresh(stored[0])
                return [KemEvent("KEM_UPDATED", kem_id, stored[0], is_published=True)]
            await self._cache.drop(kem_id)
        return [] if cached is None else [KemEvent("KEM_EVICTED", kem_id)]

    async def apply_deletion(self, kem_id: str) -> list[KemEvent]:
        await self._writes.cancel(kem_id)
        await self._cache.drop(kem_id)
        return [KemEvent("KEM_DELETED", kem_id, is_published=True)]

    async def evictions(self) -> list[KemEvent]:
        return [KemEvent("KEM_EVICTED", kem_id) for kem_id in await self._cache.cache.take_evicted()]

    async def clear(self) -> dict[str, int]:
        """Remove all units. Raises CacheAway."""
        waiting = await self._writes.clear(lambda _kem: True)
        return {"kems at hand": await self._cache.cache.clear(), "kems under way": waiting}

    async def erase_user(self, user_id: str) -> dict[str, int]:
        """Remove the units that a user owns or that name the user. Raises CacheAway."""

        def is_theirs(kem: Kem) -> bool:
            return kem.owner == f"user.{user_id}" or kem.metadata.get(USER_KEY) == user_id

        waiting = await self._writes.clear(is_theirs)
        kems = [kem async for kem in self._cache.ordered(KemQuery()) if is_theirs(kem)]
        for kem in kems:
            await self._cache.drop(kem.id)
        return {"kems at hand": len(kems), "kems under way": waiting}

    async def _send(self, publisher: str, writes: Sequence[QueuedWrite]) -> list[tuple[QueuedWrite, BatchItem]]:
        # A number may be used again once its write is done, so it does not name the write alone.
        named = (f"{write.seq} {write.kem_id} {write.kem and write.kem.updated_at}" for write in writes)
        report = await self._glm.store([write.draft for write in writes], publisher, derived(publisher, *named))
        pairs = list(zip(writes, report.items, strict=True))
        for write, item in pairs:
            if item.status == "failed":
                logger().warning("not stored yet", kem_id=write.kem_id, reason=item.error)
        return [(write, item) for write, item in pairs if item.status != "failed"]

    async def _settle(self, write: QueuedWrite, item: BatchItem) -> list[KemEvent]:
        async with self._cache.lock:
            cached = await self._cache.find(write.kem_id)
            if cached is None or write.kem is None or cached.updated_at != write.kem.updated_at:
                return []
            if item.status == "refused":
                logger().warning("the global memory refuses", kem_id=write.kem_id, code=item.code, reason=item.error)
                await self._cache.drop(write.kem_id)
                return [KemEvent("KEM_EVICTED", write.kem_id)]
            await self._cache.put(_as_stored(cached, item))
        return []


def _as_stored(kem: Kem, item: BatchItem) -> Kem:
    times = {"created_at": item.created_at, "updated_at": item.updated_at, "version": item.version}
    return kem.model_copy(update={name: value for name, value in times.items() if value is not None})

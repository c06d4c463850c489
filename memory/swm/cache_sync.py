"""The working memory keeps up with the global one."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from bus_schema.glm import BatchItem
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.glm.erasure import USER_KEY
from memory.swm.cache import BufferedCache
from memory.swm.glm import Glm
from memory.swm.subscriptions import KemEvent
from memory.swm.write_queue import QueuedWrite, WriteQueue
from mindbus.logs import logger


class CacheSync:
    """Carries writes to the global memory; brings what others have changed there."""

    def __init__(self, shelf: BufferedCache, writes: WriteQueue, glm: Glm) -> None:
        self._shelf, self._writes, self._glm = shelf, writes, glm

    async def refill(self) -> None:
        """Have at hand what is on its way: a cache in memory begins empty."""
        for write in await self._writes.next("glm", limit=10_000):
            if write.kem is not None and await self._shelf.find(write.kem_id) is None:
                await self._shelf.put(write.kem)

    async def carry(self) -> list[KemEvent]:
        """Store the writes that come first; what the global memory refuses does not stay at hand. Raises GlmAway."""
        writes = await self._writes.next("glm")
        happened: list[KemEvent] = []
        for publisher, some in _by_publisher(writes):
            settled = await self._stored(publisher, list(some))
            happened += [each for write, item in settled for each in await self._settle(write, item)]
            await self._writes.arrived([write.seq for write, _ in settled])
        return happened

    async def changed(self, kem_id: str, version: int, updated_at: datetime, *, is_new: bool) -> list[KemEvent]:
        """The global memory tells that it has this version. Raises GlmAway."""
        at_hand = await self._shelf.find(kem_id)
        is_known = at_hand is not None and (at_hand.version, at_hand.updated_at) == (version, updated_at)
        if is_known or (at_hand is None and is_new) or await self._writes.pending([kem_id]):
            return []
        found = await self._glm.fetch([kem_id])
        async with self._shelf.turn:
            if await self._shelf.find(kem_id) != at_hand or await self._writes.pending([kem_id]):
                # Published meanwhile, which is newer.
                return []
            if found:
                await self._shelf.renew(found[0])
                return [KemEvent("KEM_UPDATED", kem_id, found[0], is_told=True)]
            await self._shelf.drop(kem_id)
        return [] if at_hand is None else [KemEvent("KEM_EVICTED", kem_id)]

    async def deleted(self, kem_id: str) -> list[KemEvent]:
        """The global memory has forgotten it."""
        await self._writes.forget(kem_id)
        await self._shelf.drop(kem_id)
        return [KemEvent("KEM_DELETED", kem_id, is_told=True)]

    async def evicted(self) -> list[KemEvent]:
        """The units that have had to go."""
        return [KemEvent("KEM_EVICTED", kem_id) for kem_id in await self._shelf.cache.evicted()]

    async def clear(self) -> dict[str, int]:
        """Drop all units. Raises CacheAway."""
        waiting = await self._writes.clear(lambda _kem: True)
        return {"kems at hand": await self._shelf.cache.clear(), "kems under way": waiting}

    async def forget(self, user_id: str) -> dict[str, int]:
        """Drop what a user owns, what names the user. Raises CacheAway."""

        def is_meant(kem: Kem) -> bool:
            return kem.owner == f"user.{user_id}" or kem.metadata.get(USER_KEY) == user_id

        waiting = await self._writes.clear(is_meant)
        kems = [kem for kem in await self._shelf.candidates(KemQuery()) if is_meant(kem)]
        for kem in kems:
            await self._shelf.drop(kem.id)
        return {"kems at hand": len(kems), "kems under way": waiting}

    async def _stored(self, publisher: str, writes: Sequence[QueuedWrite]) -> list[tuple[QueuedWrite, BatchItem]]:
        report = await self._glm.store([write.draft for write in writes], publisher)
        pairs = list(zip(writes, report.items, strict=True))
        for write, item in pairs:
            if item.status == "failed":
                logger().warning("not stored yet", kem_id=write.kem_id, reason=item.error)
        return [(write, item) for write, item in pairs if item.status != "failed"]

    async def _settle(self, write: QueuedWrite, item: BatchItem) -> list[KemEvent]:
        async with self._shelf.turn:
            at_hand = await self._shelf.find(write.kem_id)
            if at_hand is None or write.kem is None or at_hand.updated_at != write.kem.updated_at:
                return []
            if item.status == "refused":
                logger().warning("the global memory refuses", kem_id=write.kem_id, code=item.code, reason=item.error)
                await self._shelf.drop(write.kem_id)
                return [KemEvent("KEM_EVICTED", write.kem_id)]
            await self._shelf.put(_as_stored(at_hand, item))
        return []


def _by_publisher(writes: Sequence[QueuedWrite]) -> "groupby[str, QueuedWrite]":
    """Only neighbours: of two writes to one unit the later one stands."""
    return groupby(writes, key=lambda write: write.publisher)


def _as_stored(kem: Kem, item: BatchItem) -> Kem:
    times = {"created_at": item.created_at, "updated_at": item.updated_at, "version": item.version}
    return kem.model_copy(update={name: value for name, value in times.items() if value is not None})

"""Synchronisation of the cache with the global memory, in both directions."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from bus_schema.glm import BatchItem
from bus_schema.identities import Principal
from bus_schema.ids import uuid7
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.errors import NoSuchKem, NotYoursToWrite, SharedMemoryAway
from memory.glm.store import USER_KEY
from memory.rights import RIGHTS, is_readable, is_writable
from memory.swm.cache import BufferedCache
from memory.swm.subscriptions import KemEvent, KemEventType
from memory.swm.working_memory import Glm
from memory.swm.write_queue import KemWriteQueue, QueuedWrite
from mindbus.logs import logger


class CacheSync:
    """Sends queued writes to the global memory and applies its changes to the cache."""

    def __init__(self, cache: BufferedCache, writes: KemWriteQueue, glm: Glm) -> None:
        self._cache, self._writes, self._glm = cache, writes, glm
        # Held while a message with writes is under way.
        self._sending = asyncio.Lock()

    async def refill(self) -> None:
        """Cache the units of queued writes: a cache in memory starts empty."""
        for write in await self._writes.next("glm", limit=10_000):
            if write.kem is not None and await self._cache.find(write.kem_id) is None:
                await self._cache.put(write.kem)

    async def flush(self) -> list[KemEvent]:
        """Send the first queued writes; units that the global memory refuses leave the cache. Raises GlmAway.

        What was not answered is sent again as it was, so that it is recognised.
        """
        async with self._sending:
            events: list[KemEvent] = []
            queued = await self._writes.next("glm")
            # Runs of consecutive writes of one publisher: the order of writes to a unit is kept.
            for _, batch in groupby(queued, key=lambda write: (write.publisher, write.message_id)):
                events += await self._flush(list(batch))
            return events

    async def _flush(self, sent: Sequence[QueuedWrite]) -> list[KemEvent]:
        message_id = sent[0].message_id or str(uuid7())
        if sent[0].message_id is None:
            await self._writes.send_in(message_id, [write.seq for write in sent])
        settled = await self._send(sent, message_id)
        events = [event for write, item in settled for event in await self._settle(write, item)]
        events += await self._correct_assumed([write for write, item in settled if item.status == "stored"])
        await self._writes.settle(message_id, [write.seq for write, _ in settled])
        return events

    async def remove(self, kem_id: str, principal: Principal) -> list[KemEvent]:
        """Remove a unit from the cache, with what is queued of it; a write under way is waited for.

        Raises NoSuchKem, NotYoursToWrite, and SharedMemoryAway where such a write has not been answered.
        """
        async with self._sending, self._cache.lock:
            queued = await self._writes.latest(kem_id)
            unit = await self._cache.find(kem_id) or (None if queued is None else queued.kem)
            if unit is None or not is_readable(unit, principal):
                raise NoSuchKem(kem_id=kem_id)
            if not is_writable(unit, principal):
                raise NotYoursToWrite(is_denied=True, kem_id=kem_id)
            if queued is not None and queued.message_id is not None:
                raise SharedMemoryAway(reason="a write of this unit is under way, but not answered")
            await self._writes.cancel(kem_id)
            await self._cache.drop(kem_id)
        return [KemEvent("KEM_DELETED", kem_id)]

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

    async def stored_elsewhere(self, kem_id: str, version: int) -> list[KemEvent]:
        """The event of a unit that was stored without being at hand, for who subscribes to it. Raises GlmAway."""
        if await self._cache.find(kem_id) is not None or await self._writes.pending([kem_id]):
            return []
        kind: KemEventType = "KEM_PUBLISHED" if version == 1 else "KEM_UPDATED"
        return [KemEvent(kind, kem_id, kem, is_published=True) for kem in await self._glm.fetch([kem_id])]

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

    async def erase_user(self, user_id: str) -> tuple[dict[str, int], list[KemEvent]]:
        """Remove the units that a user owns or that name the user. Raises CacheAway."""

        def is_theirs(kem: Kem) -> bool:
            about = kem.metadata.get(USER_KEY)
            return kem.owner == f"user.{user_id}" or user_id in (about if isinstance(about, list | tuple) else (about,))

        waiting = await self._writes.clear(is_theirs)
        kems = [kem async for kem in self._cache.ordered(KemQuery()) if is_theirs(kem)]
        for kem in kems:
            await self._cache.drop(kem.id)
        events = [KemEvent("KEM_DELETED", kem.id) for kem in kems]
        return {"kems at hand": len(kems), "kems under way": waiting}, events

    async def _send(self, writes: Sequence[QueuedWrite], message_id: str) -> list[tuple[QueuedWrite, BatchItem]]:
        report = await self._glm.store([write.draft for write in writes], writes[0].publisher, message_id)
        # By id: units that were deleted after the message was first sent are still in the answer.
        items = {item.kem_id: item for item in report.items}
        pairs = [(write, items[write.kem_id]) for write in writes if write.kem_id in items]
        for write, item in pairs:
            if item.status == "failed":
                logger().warning("not stored yet", kem_id=write.kem_id, reason=item.error)
        return [(write, item) for write, item in pairs if item.status != "failed"]

    async def _correct_assumed(self, stored: Sequence[QueuedWrite]) -> list[KemEvent]:
        """Give units what the global memory alone knows of them.

        Those that were held private, since nobody could say who may read them, get the rights that they have; those
        that supersede others the time from which they hold.
        """
        assumed = {
            write.kem_id: write.kem
            for write in stored
            if write.kem is not None and (_is_assumed(write) or _begins_to_hold(write.kem))
        }
        if not assumed:
            return []
        events: list[KemEvent] = []
        for kem in await self._glm.fetch(assumed):
            async with self._cache.lock:
                cached = await self._cache.find(kem.id)
                # Published here meanwhile, it is newer.
                if cached is None or (cached.version, cached.updated_at) != (kem.version, kem.updated_at):
                    continue
                await self._cache.put(kem)
            if cached.visibility != kem.visibility:
                events.append(KemEvent("KEM_PUBLISHED" if kem.version == 1 else "KEM_UPDATED", kem.id, kem))
        return events

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


def _is_assumed(write: QueuedWrite) -> bool:
    return write.kem is not None and write.kem.visibility == "private" and not RIGHTS & set(write.given)


def _begins_to_hold(kem: Kem) -> bool:
    return bool(kem.supersedes) and kem.valid_from is None and kem.valid_to is None


def _as_stored(kem: Kem, item: BatchItem) -> Kem:
    times = {"created_at": item.created_at, "updated_at": item.updated_at, "version": item.version}
    return kem.model_copy(update={name: value for name, value in times.items() if value is not None})

"""Shared memory as a user may read it: search, facets, changes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from bus_schema.envelope import Envelope
from bus_schema.glm import GetMemoryStats, KemDeleted, KemPage, KemStored, KemUpdated, MemoryStats, RetrieveKems
from bus_schema.kem import Kem, KemNotice
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Query
from bus_schema.replies import Code
from bus_schema.swm import KemEvicted, KemPublished, QuerySwm
from gateway.event_feed import Broadcast, EventFeed, MissedEvents
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, MindBusError, Rejected, ReplyError
from mindbus.logs import logger
from mindbus.sdk.kem_filters import Filter, FilterSubject

ChangeKind = Literal["stored", "published", "updated", "evicted", "deleted"]
_ChangeEvent = KemNotice | KemDeleted | KemEvicted
ReceivedChange = tuple[Envelope, _ChangeEvent]

_REMEMBERED: Final = 10_000
# Units stored together are read together.
_BATCH: Final = 100
_GATHER_S: Final = 0.1
_EVENTS: Final[dict[str, tuple[ChangeKind, type[_ChangeEvent]]]] = {
    KemStored.wire.type: ("stored", KemStored),
    KemPublished.wire.type: ("published", KemPublished),
    KemUpdated.wire.type: ("updated", KemUpdated),
    KemEvicted.wire.type: ("evicted", KemEvicted),
    KemDeleted.wire.type: ("deleted", KemDeleted),
}
_FILTER_NAMES: Final = {"evicted": "KEM_EVICTED", "deleted": "KEM_DELETED"}


class KemChange(BaseModel):
    """A change of a unit; `kem` is None if it is gone, or could not be read just now."""

    model_config = ConfigDict(frozen=True)
    event: ChangeKind
    kem_id: str
    at: datetime
    by: str
    version: int | None = None
    metadata: dict[str, JsonValue] = {}
    kem: Kem | None = None

    def meets(self, condition: Filter) -> bool:
        """True if the change matches a filter of the working memory's subscribers."""
        is_new = self.event != "updated" and self.version == 1
        name = _FILTER_NAMES.get(self.event, "KEM_PUBLISHED" if is_new else "KEM_UPDATED")
        return condition.matches(FilterSubject(name, self.kem_id, self.metadata))


@dataclass(frozen=True)
class ReadableKems:
    """Units that the user may read, by id; not `is_all` if a part of memory did not answer."""

    kems: Mapping[str, Kem]
    is_all: bool = True


Fetch = Callable[[Collection[str]], Awaitable[ReadableKems]]


class MemoryChanges(Broadcast[KemChange]):
    """Changes for one user; the units are read from memory as this user, so that its access rules apply.

    The rights to a unit that is gone can no longer be asked: its end is reported if the user has seen the unit.
    """

    def __init__(self, fetch: Fetch) -> None:
        super().__init__()
        self._fetch = fetch
        self._seen: LRUCache[str, dict[str, JsonValue]] = LRUCache(_REMEMBERED)

    def mark_seen(self, *kems: Kem) -> None:
        """Record that the user has read these units."""
        for kem in kems:
            self._seen[kem.id] = kem.metadata

    async def process(self, received: Sequence[ReceivedChange], *, has_missed: bool) -> None:
        """Pass on what the user may read; without listeners nothing is fetched."""
        if has_missed:
            self.put(MissedEvents())
        for first in range(0, len(received) if self.listeners else 0, _BATCH):
            await self._process_batch(received[first : first + _BATCH])

    async def _process_batch(self, received: Sequence[ReceivedChange]) -> None:
        kem_ids = {event.kem_id for _, event in received if isinstance(event, KemNotice)}
        readable = await self._fetch(kem_ids) if kem_ids else ReadableKems({})
        for envelope, event in received:
            change = self._change(envelope, event, readable)
            if change is not None:
                self.put(change)

    def _change(self, envelope: Envelope, event: _ChangeEvent, readable: ReadableKems) -> KemChange | None:
        kem_id, kem = event.kem_id, readable.kems.get(event.kem_id)
        fields: dict[str, Any] = {"kem_id": kem_id, "at": envelope.time, "by": envelope.requester}
        kind = _EVENTS[envelope.type][0]
        if isinstance(event, KemNotice) and (kem is not None or event.visibility == "public"):
            self._seen[kem_id] = kem.metadata if kem is not None else event.metadata
            fields |= {"version": event.version, "kem": kem}
        elif isinstance(event, KemNotice) and not readable.is_all:
            return None
        elif isinstance(event, KemNotice):
            # A unit that has been hidden from the user looks deleted.
            kind = "deleted"
        metadata = self._seen.get(kem_id)
        if kind == "deleted":
            self._seen.pop(kem_id, None)
        return None if metadata is None else KemChange(event=kind, metadata=metadata, **fields)


class MemoryChangeListener:
    """Reads change events from the feed once for all users, in batches."""

    def __init__(self, feed: EventFeed, users: Callable[[], Iterable[MemoryChanges]]) -> None:
        self._feed, self._users = feed, users

    async def run(self) -> None:
        with self._feed.listen() as listener:
            while True:
                await listener.wait()
                await asyncio.sleep(_GATHER_S)
                items = listener.take()
                received = [(item, event) for item in items if isinstance(item, Envelope) and (event := _event(item))]
                has_missed = any(isinstance(item, MissedEvents) for item in items)
                if received or has_missed:
                    await asyncio.gather(*(user.process(received, has_missed=has_missed) for user in self._users()))


def _event(envelope: Envelope) -> _ChangeEvent | None:
    event_type = _EVENTS.get(envelope.type)
    if event_type is None:
        return None
    try:
        return event_type[1].model_validate(envelope.data or {})
    except ValidationError as error:
        logger().warning("unreadable change", source=envelope.source, reason=str(error))
        return None


_MAX_CACHED: Final = 50
# Nobody waits longer at a screen.
_TIMEOUT_S: Final = 10.0


class SlowSubscriber(MindBusError, code=Code.UNAVAILABLE):
    """Changes came faster than they were taken; search again to see what is missing."""


class KemNotFound(Rejected, code=Code.NOT_FOUND):
    """There is no such unit, or it is not yours to read."""


class SharedMemory:
    """Memory as one user may read it; a unit that is not readable looks absent."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self.changes = MemoryChanges(partial(readable_kems, bus))

    async def search(
        self, query: KemQuery, cursor: str | None = None, limit: int = 20, *, explain: bool = False
    ) -> KemPage:
        """Units most similar to the query's text; without one, the newest."""
        page = await self._bus.request(
            RetrieveKems(query=query, cursor=cursor, page_size=limit, explain=explain), timeout_s=_TIMEOUT_S
        )
        self.changes.mark_seen(*(item.kem for item in page.items))
        return page

    async def kem(self, kem_id: str) -> Kem:
        """A unit of the global memory, else of the working memory. Raises KemNotFound."""
        query = KemQuery(ids=(kem_id,))
        for command in (RetrieveKems(query=query, page_size=1), QuerySwm(query=query, page_size=1)):
            for item in (await self._bus.request(command, timeout_s=_TIMEOUT_S)).items:
                self.changes.mark_seen(item.kem)
                return item.kem
        raise KemNotFound

    async def stats(self) -> MemoryStats:
        return await self._bus.request(GetMemoryStats(), timeout_s=_TIMEOUT_S)

    async def follow(self, condition: Filter) -> AsyncGenerator[KemChange]:
        """Changes that match the filter, from now on. Raises SlowSubscriber."""
        with self.changes.listen() as listener:
            async for item in listener:
                if isinstance(item, MissedEvents):
                    raise SlowSubscriber
                if item.meets(condition):
                    yield item


class SharedMemories:
    """One SharedMemory for each identity, as long as it is in use; the latest are kept longer."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self._used: WeakValueDictionary[str, SharedMemory] = WeakValueDictionary()
        self._latest: LRUCache[str, SharedMemory] = LRUCache(_MAX_CACHED)

    def of(self, identity: str) -> SharedMemory:
        """That of an identity."""
        memory = self._used.get(identity)
        if memory is None:
            memory = SharedMemory(self._bus.acting_as(identity))
        self._used[identity] = self._latest[identity] = memory
        return memory

    def changes(self) -> list[MemoryChanges]:
        return [memory.changes for memory in self._used.values()]


async def readable_kems(bus: Client, kem_ids: Collection[str]) -> ReadableKems:
    """Those of these units that the client may read, from the global memory or the working memory."""
    readable: dict[str, Kem] = {}
    is_all = True
    for kind in (RetrieveKems, QuerySwm):
        missing = tuple(sorted(set(kem_ids) - readable.keys()))
        if not missing:
            break
        query: Query[KemPage] = kind(query=KemQuery(ids=missing), page_size=len(missing))
        try:
            readable |= {item.kem.id: item.kem for item in (await bus.request(query, timeout_s=_TIMEOUT_S)).items}
        except (BusUnavailable, ReplyError) as error:
            logger().warning("changes without content", reason=str(error))
            is_all = False
    return ReadableKems(readable, is_all)

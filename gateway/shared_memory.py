"""Shared memory as a user may read it: search, facets, changes."""

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict

from bus_schema.glm import MAX_PAGE, FoundKem, GetMemoryStats, KemPage, MemoryStats, RetrieveKems
from bus_schema.kem import Kem
from bus_schema.kem_match import facets
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Query
from bus_schema.replies import Code
from bus_schema.swm import QuerySwm
from gateway.event_feed import MissedEvents
from gateway.memory_changes import KemChange, MemoryChanges, ReadableKems
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, MindBusError, Rejected, ReplyError
from mindbus.logs import logger
from mindbus.sdk.kem_filters import Filter

_MAX_VALUES: Final = 50
_KEPT: Final = 50
# Nobody waits longer at a screen.
_TIMEOUT_S: Final = 10.0


class SlowSubscriber(MindBusError, code=Code.UNAVAILABLE):
    """Changes came faster than they were taken; search again to see what is missing."""


class KemNotFound(Rejected, code=Code.NOT_FOUND):
    """There is no such unit, or it is not yours to read."""


class FacetValue(BaseModel):
    """A value with the number of units that have it."""

    model_config = ConfigDict(frozen=True)
    value: str | bool | int | float
    count: int


class Facets(BaseModel):
    """Values of metadata and content types, the most frequent first, among the first `counted` units of an answer."""

    model_config = ConfigDict(frozen=True)
    counted: int
    is_all: bool
    content_types: list[FacetValue]
    metadata: dict[str, list[FacetValue]]


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
        """Number of readable units."""
        return await self._bus.request(GetMemoryStats(), timeout_s=_TIMEOUT_S)

    async def facets(self, query: KemQuery) -> Facets:
        """Facets of the first page of an answer."""
        page = await self.search(query, limit=MAX_PAGE)
        return facets_of(page.items, is_all=page.next_cursor is None)

    async def follow(self, wanted: Filter) -> AsyncGenerator[KemChange]:
        """Changes that match the filter, from now on. Raises SlowSubscriber."""
        with self.changes.listen() as listener:
            async for item in listener:
                if isinstance(item, MissedEvents):
                    raise SlowSubscriber
                if item.meets(wanted):
                    yield item


class SharedMemories:
    """One SharedMemory for each user, as long as it is in use; the latest are kept longer."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self._used: WeakValueDictionary[str | None, SharedMemory] = WeakValueDictionary()
        self._latest: LRUCache[str | None, SharedMemory] = LRUCache(_KEPT)

    def of(self, user_id: str | None) -> SharedMemory:
        """That of a user, else the gateway's own."""
        memory = self._used.get(user_id)
        if memory is None:
            memory = SharedMemory(self._bus if user_id is None else self._bus.acting_as(f"user.{user_id}"))
        self._used[user_id] = self._latest[user_id] = memory
        return memory

    def changes(self) -> list[MemoryChanges]:
        """The changes of each user."""
        return [memory.changes for memory in self._used.values()]


def facets_of(found: Iterable[FoundKem], *, is_all: bool) -> Facets:
    """Facets of these units."""
    kems = [item.kem for item in found]
    values: dict[str, Counter[str | bool | float]] = {}
    for kem in kems:
        # A list may hold a value twice; True is not counted as 1.
        for key, _, value in {(key, type(value), value) for key, value in facets(kem.metadata)}:
            values.setdefault(key, Counter())[value] += 1
    return Facets(
        counted=len(kems),
        is_all=is_all,
        content_types=_most_common(Counter(kem.content_type for kem in kems)),
        metadata={key: _most_common(counts) for key, counts in sorted(values.items())},
    )


async def readable_kems(bus: Client, kem_ids: Collection[str]) -> ReadableKems:
    """Those of these units that the client may read, from the global memory or the working memory."""
    found: dict[str, Kem] = {}
    is_all = True
    for kind in (RetrieveKems, QuerySwm):
        missing = tuple(sorted(set(kem_ids) - found.keys()))
        if not missing:
            break
        query: Query[KemPage] = kind(query=KemQuery(ids=missing), page_size=len(missing))
        try:
            found |= {item.kem.id: item.kem for item in (await bus.request(query, timeout_s=_TIMEOUT_S)).items}
        except (BusUnavailable, ReplyError) as error:
            logger().warning("changes without content", reason=str(error))
            is_all = False
    return ReadableKems(found, is_all)


def _most_common(counts: "Counter[str] | Counter[str | bool | float]") -> list[FacetValue]:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))
    return [FacetValue(value=value, count=count) for value, count in ordered[:_MAX_VALUES]]

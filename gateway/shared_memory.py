"""What agents know together, as the gateway's user may read it."""

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict

from bus_schema.glm import MAX_PAGE, FoundKem, GetMemoryStats, KemPage, MemoryStats, RetrieveKems
from bus_schema.kem import Kem
from bus_schema.kem_matching import facets
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Query
from bus_schema.swm import QuerySwm
from gateway.event_feed import MissedEvents
from gateway.memory_changes import KemChange, MemoryChanges, ReadableKems
from memory.errors import NoSuchKem
from memory.filters import Filter
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger

_MOST_VALUES: Final = 50
_KEPT: Final = 50
# Whoever looks at a screen waits no longer.
_WITHIN_S: Final = 10.0


class SlowSubscriber(Exception):
    """Changes came faster than they were taken; what is missing can be searched for."""


class FacetValue(BaseModel):
    """A value with the number of units that have it."""

    model_config = ConfigDict(frozen=True)
    value: str | bool | int | float
    count: int


class Facets(BaseModel):
    """What units have in common, the most frequent first; of so many units, those that come first in the answer."""

    model_config = ConfigDict(frozen=True)
    counted: int
    is_all: bool
    content_types: list[FacetValue]
    metadata: dict[str, list[FacetValue]]


class SharedMemory:
    """Memory as one user may read it; what is denied looks like what is not there."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self.changes = MemoryChanges(partial(readable_to, bus))

    async def search(
        self, query: KemQuery, cursor: str | None = None, limit: int = 20, *, explain: bool = False
    ) -> KemPage:
        """What is nearest to a text; without one, the newest."""
        page = await self._bus.request(
            RetrieveKems(query=query, cursor=cursor, page_size=limit, explain=explain), timeout_s=_WITHIN_S
        )
        self.changes.saw(*(item.kem for item in page.items))
        return page

    async def kem(self, kem_id: str) -> Kem:
        """A unit that is kept, or is at hand at least. Raises NoSuchKem."""
        query = KemQuery(ids=(kem_id,))
        for question in (RetrieveKems(query=query, page_size=1), QuerySwm(query=query, page_size=1)):
            for item in (await self._bus.request(question, timeout_s=_WITHIN_S)).items:
                self.changes.saw(item.kem)
                return item.kem
        raise NoSuchKem

    async def stats(self) -> MemoryStats:
        """How much there is."""
        return await self._bus.request(GetMemoryStats(), timeout_s=_WITHIN_S)

    async def facets(self, query: KemQuery) -> Facets:
        """Counted among as many of the first units as one answer has."""
        page = await self.search(query, limit=MAX_PAGE)
        return facets_of(page.items, is_all=page.next_cursor is None)

    async def follow(self, wanted: Filter) -> AsyncGenerator[KemChange]:
        """Changes that a filter describes, from now on. Raises SlowSubscriber."""
        with self.changes.listen() as news:
            async for item in news:
                if isinstance(item, MissedEvents):
                    raise SlowSubscriber(SlowSubscriber.__doc__)
                if item.meets(wanted):
                    yield item


class SharedMemories:
    """One for each user who asks, as long as they are used, the latest a while longer."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self._used: WeakValueDictionary[str | None, SharedMemory] = WeakValueDictionary()
        self._latest: LRUCache[str | None, SharedMemory] = LRUCache(_KEPT)

    def of(self, user_id: str | None) -> SharedMemory:
        """That of a user, else that of whoever asks here."""
        memory = self._used.get(user_id)
        if memory is None:
            memory = SharedMemory(self._bus if user_id is None else self._bus.acting_as(f"user.{user_id}"))
        self._used[user_id] = self._latest[user_id] = memory
        return memory

    def changes(self) -> list[MemoryChanges]:
        """What each of them is told of."""
        return [memory.changes for memory in self._used.values()]


class MemoryDesk:
    """Asks in the name of a user, as dialogues do: memory decides what they may read."""

    _memories: SharedMemories

    def memory_of(self, user_id: str | None = None) -> SharedMemory:
        """That of a user, else the gateway's own."""
        return self._memories.of(user_id)


def facets_of(found: Iterable[FoundKem], *, is_all: bool) -> Facets:
    """What can be counted of units that were found."""
    kems = [item.kem for item in found]
    values: dict[str, Counter[str | bool | float]] = {}
    for kem in kems:
        # A list may name a value twice; a truth is no number here.
        for key, _, value in {(key, type(value), value) for key, value in facets(kem.metadata)}:
            values.setdefault(key, Counter())[value] += 1
    return Facets(
        counted=len(kems),
        is_all=is_all,
        content_types=_counted(Counter(kem.content_type for kem in kems)),
        metadata={key: _counted(counts) for key, counts in sorted(values.items())},
    )


async def readable_to(bus: Client, kem_ids: Collection[str]) -> ReadableKems:
    """Those of these units that the client may read, in the global memory or at hand."""
    found: dict[str, Kem] = {}
    is_all = True
    for kind in (RetrieveKems, QuerySwm):
        missing = tuple(sorted(set(kem_ids) - found.keys()))
        if not missing:
            break
        question: Query[KemPage] = kind(query=KemQuery(ids=missing), page_size=len(missing))
        try:
            found |= {item.kem.id: item.kem for item in (await bus.request(question, timeout_s=_WITHIN_S)).items}
        except (BusUnavailable, ReplyError) as away:
            logger().warning("changes told without content", reason=str(away))
            is_all = False
    return ReadableKems(found, is_all)


def _counted(counts: "Counter[str] | Counter[str | bool | float]") -> list[FacetValue]:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))
    return [FacetValue(value=value, count=count) for value, count in ordered[:_MOST_VALUES]]

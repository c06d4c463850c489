"""Memory units cached in the agent's own process (spec 000 §3.6, §4.3.2): a bounded cache indexed by metadata."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from cachetools import Cache, LFUCache, LRUCache
from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.glm import KemDeleted, KemStored, KemUpdated
from bus_schema.kem import Kem, KemNotice
from bus_schema.kem_match import indexable_texts, matches_query, required_texts, sorted_kems
from bus_schema.kem_query import KemQuery
from mindbus.bus.client import Client
from mindbus.bus.subscriptions import EventSubscription
from mindbus.logs import logger
from mindbus.sdk.errors import RankedQueryUnsupported
from mindbus.tasks import end

ValueT = TypeVar("ValueT")
Policy = Literal["lru", "lfu"]
TextFacet = tuple[str, str]

MAX_BYTES = 64 * 1024**2
_REMEMBERED_CHANGES = 10_000
_UNBOUNDED = float("inf")
# Estimated size of a unit without its content, metadata and vector.
_OVERHEAD_BYTES = 2000
_LOWEST_PRIORITY, _HIGHEST_PRIORITY = -10, 10


@dataclass(frozen=True, slots=True)
class _Entry(Generic[ValueT]):
    value: ValueT
    facets: frozenset[TextFacet]
    size: int
    priority: float


class IndexedLRUCache(Generic[ValueT]):
    """Cache of at most `max_bytes` that evicts the lowest priority first, then the least recently or frequently used.

    Facets are pairs of metadata key and text; those of `indexed_keys` are indexed. Thread-safe.
    """

    def __init__(self, max_bytes: int, indexed_keys: Iterable[str] = (), policy: Policy = "lru") -> None:
        self.max_bytes, self.indexed_keys = max_bytes, frozenset(indexed_keys)
        self._kind: type[Cache[str, None]] = LFUCache if policy == "lfu" else LRUCache
        self._entries: dict[str, _Entry[ValueT]] = {}
        # Eviction order of each priority; sizes are counted here, not there.
        self._order: dict[float, Cache[str, None]] = {}
        self._index: dict[TextFacet, set[str]] = {}
        self._bytes = 0
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        return self._bytes

    def put(self, key: str, value: ValueT, facets: Iterable[TextFacet], size: int, priority: float = 0) -> list[str]:
        """Add or replace a value; returns the evicted keys, its own among them if it does not fit."""
        entry = _Entry(value, frozenset(facet for facet in facets if facet[0] in self.indexed_keys), size, priority)
        with self._lock:
            self.pop(key)
            evicted = self._make_room(size, priority)
            if self._bytes + size > self.max_bytes:
                return [*evicted, key]
            self._entries[key] = entry
            self._bytes += size
            for facet in entry.facets:
                self._index.setdefault(facet, set()).add(key)
            self._order.setdefault(priority, self._kind(_UNBOUNDED))[key] = None
            return evicted

    def get(self, key: str) -> ValueT | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            _use = self._order[entry.priority][key]
            return entry.value

    def peek(self, key: str) -> ValueT | None:
        """The value, or None; does not count as a use."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.value

    def pop(self, key: str) -> ValueT | None:
        """Remove and return the value, or None."""
        with self._lock:
            if key not in self._entries:
                return None
            entry = self._remove(key)
            del self._order[entry.priority][key]
            self._forget_level(entry.priority)
            return entry.value

    def with_facets(self, key: str, texts: Collection[str]) -> set[str]:
        """Keys of the values that have one of these texts under an indexed metadata key."""
        with self._lock:
            return {key_ids for text in texts for key_ids in self._index.get((key, text), ())}

    def keys(self) -> list[str]:
        with self._lock:
            return list(self._entries)

    def clear(self) -> int:
        with self._lock:
            count = len(self._entries)
            self._entries.clear()
            self._order.clear()
            self._index.clear()
            self._bytes = 0
            return count

    def _make_room(self, size: int, priority: float) -> list[str]:
        """Evict until `size` fits; nothing is evicted for a value that is too large or of lower priority."""
        evicted = []
        while size <= self.max_bytes < self._bytes + size and (lowest := min(self._order)) <= priority:
            key, _ = self._order[lowest].popitem()
            self._forget_level(lowest)
            self._remove(key)
            evicted.append(key)
        return evicted

    def _remove(self, key: str) -> _Entry[ValueT]:
        entry = self._entries.pop(key)
        self._bytes -= entry.size
        for facet in entry.facets:
            self._index[facet].discard(key)
            if not self._index[facet]:
                del self._index[facet]
        return entry

    def _forget_level(self, priority: float) -> None:
        if not self._order[priority]:
            del self._order[priority]


class IndexedKems(IndexedLRUCache[Kem]):
    """Units by id, indexed by the texts of their metadata. Thread-safe."""

    def keep(self, kem: Kem) -> list[str]:
        """Add or replace a unit; returns the ids of the evicted ones, its own among them if it does not fit."""
        return self.put(kem.id, kem, indexable_texts(kem), _size_of(kem), priority_of(kem))

    def candidates(self, query: KemQuery) -> list[Kem]:
        """Superset of the units that the query selects, narrowed by the index; does not count as a use."""
        kem_ids = set(query.ids) if query.ids else None
        for key, texts in required_texts(query.metadata_filters, self.indexed_keys):
            indexed = self.with_facets(key, texts)
            kem_ids = indexed if kem_ids is None else kem_ids & indexed
        kems = map(self.peek, self.keys() if kem_ids is None else kem_ids)
        return [kem for kem in kems if kem is not None]


def priority_of(kem: Kem) -> int:
    """Priority from -10 to 10: the number under `priority` in the metadata, rounded; 0 without one."""
    value = kem.metadata.get("priority")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(_LOWEST_PRIORITY, min(_HIGHEST_PRIORITY, round(value)))


def _size_of(kem: Kem) -> int:
    vector = 0 if kem.embeddings is None else len(kem.embeddings.data)
    return _OVERHEAD_BYTES + len((kem.content or "").encode()) + len(repr(kem.metadata)) + vector


class LocalAgentMemory:
    """An LRU cache of units, indexed by metadata; units are copied in and out."""

    def __init__(self, indexed_keys: Iterable[str] = (), max_bytes: int = MAX_BYTES) -> None:
        self._kems = IndexedKems(max_bytes, indexed_keys)
        # A result that was requested before a change may be older than the change.
        self._changed: LRUCache[str, int] = LRUCache(_REMEMBERED_CHANGES)
        self._changes = 0
        self._cleared = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kems)

    def get(self, kem_id: str) -> Kem | None:
        kem = self._kems.get(kem_id)
        return None if kem is None else _copy(kem)

    def peek(self, kem_id: str) -> Kem | None:
        """The unit itself, not counted as used, or None."""
        return self._kems.peek(kem_id)

    def query(self, query: KemQuery | None = None) -> list[Kem]:
        """Units that match a query, newest first unless it names an order. Raises RankedQueryUnsupported."""
        query = query or KemQuery()
        if query.is_ranked:
            raise RankedQueryUnsupported(RankedQueryUnsupported.__doc__)
        kems = sorted_kems((kem for kem in self._kems.candidates(query) if matches_query(kem, query)), query)
        return [_copy(kem) for kem in kems]

    def moment(self) -> int:
        """The count of changes: taken before a unit is requested, passed to `keep` with the result."""
        return self._changes

    def keep(self, kem: Kem, asked_at: int | None = None) -> None:
        """Store a unit in place of an older one; drop both where it changed after `asked_at`, when it was requested.

        Without `asked_at` the unit is the newest.
        """
        with self._lock:
            changed_at = max(self._changed.get(kem.id, 0), self._cleared)
            is_surely_newer = asked_at is None or changed_at <= asked_at or self._kems.peek(kem.id) == kem
            self._note(kem.id)
            if is_surely_newer:
                self._kems.keep(_copy(kem))
            else:
                self._kems.pop(kem.id)

    def drop(self, kem_id: str) -> None:
        with self._lock:
            self._note(kem_id)
            self._kems.pop(kem_id)

    def clear(self) -> None:
        with self._lock:
            self._changes += 1
            self._cleared = self._changes
            self._kems.clear()

    def _note(self, kem_id: str) -> None:
        self._changes += 1
        self._changed[kem_id] = self._changes


def _copy(kem: Kem) -> Kem:
    """A copy; all but the metadata is frozen."""
    return kem.model_copy(update={"metadata": deepcopy(kem.metadata)})


_TOPIC = "kem.*"
_EVENTS = {kind.wire.type: kind for kind in (KemDeleted, KemStored, KemUpdated)}


@asynccontextmanager
async def dropping_stale(bus: Client, local_memory: LocalAgentMemory) -> AsyncIterator[None]:
    """While the block runs, drop the units that have changed elsewhere, subscribed to or not; all, if it is unknown."""
    async with bus.subscribe(_TOPIC, on_gap=local_memory.clear) as notices:
        dropping = asyncio.create_task(_drop_changed(notices, local_memory), name="notices of memory")
        try:
            yield
        finally:
            await end(dropping)


async def _drop_changed(notices: "EventSubscription[Envelope]", local_memory: LocalAgentMemory) -> None:
    async for envelope in notices:
        kind = _EVENTS.get(envelope.type)
        if kind is None:
            continue
        try:
            notice = kind.model_validate(envelope.data)
        except ValidationError:
            logger().warning("unreadable notice", type=envelope.type)
            continue
        if not _is_known(notice, local_memory):
            local_memory.drop(notice.kem_id)


def _is_known(notice: KemDeleted | KemNotice, local_memory: LocalAgentMemory) -> bool:
    if not isinstance(notice, KemNotice):
        return False
    cached = local_memory.peek(notice.kem_id)
    if cached is None:
        return False
    if isinstance(notice, KemStored):
        # The working memory stores a unit unchanged, but later.
        return cached.version >= notice.version
    return (cached.version, cached.updated_at) == (notice.version, notice.updated_at)

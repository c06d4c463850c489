"""Bounded in-memory cache of units with an index on their metadata (spec 000 §3.6)."""

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from cachetools import Cache, LFUCache, LRUCache

from bus_schema.kem import Kem
from bus_schema.kem_matching import indexable_texts, required_texts
from bus_schema.kem_query import KemQuery

ValueT = TypeVar("ValueT")
Policy = Literal["lru", "lfu"]
TextFacet = tuple[str, str]

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
        """Total bytes of the values."""
        return self._bytes

    def put(self, key: str, value: ValueT, facets: Iterable[TextFacet], size: int, priority: float = 0) -> list[str]:
        """Add or replace a value; returns the evicted keys, its own among them if it does not fit."""
        entry = _Entry(value, frozenset(each for each in facets if each[0] in self.indexed_keys), size, priority)
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
        """The value, or None; counts as a use."""
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
            return {found for text in texts for found in self._index.get((key, text), ())}

    def keys(self) -> list[str]:
        """All keys, in no particular order."""
        with self._lock:
            return list(self._entries)

    def clear(self) -> int:
        """Remove everything; returns the number of values."""
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
    given = kem.metadata.get("priority")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return 0
    return max(_LOWEST_PRIORITY, min(_HIGHEST_PRIORITY, round(given)))


def _size_of(kem: Kem) -> int:
    vector = 0 if kem.embeddings is None else len(kem.embeddings.data)
    return _OVERHEAD_BYTES + len((kem.content or "").encode()) + len(repr(kem.metadata)) + vector

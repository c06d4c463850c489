"""A bounded cache in memory with an index on metadata (spec 000 §3.6)."""

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from cachetools import Cache, LFUCache, LRUCache

ValueT = TypeVar("ValueT")
Policy = Literal["lru", "lfu"]
Facet = tuple[str, str]

_UNBOUNDED = float("inf")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[ValueT]):
    value: ValueT
    facets: frozenset[Facet]
    size: int
    priority: float


class IndexedLRUCache(Generic[ValueT]):
    """When it is full, the least important goes first; among those, the one used longest ago, or least often.

    Facets are the texts in a value's metadata by key; those of `indexed_keys` can be looked for. Any thread may use it.
    """

    def __init__(self, max_bytes: int, indexed_keys: Iterable[str] = (), policy: Policy = "lru") -> None:
        self.max_bytes, self.indexed_keys = max_bytes, frozenset(indexed_keys)
        self._kind: type[Cache[str, None]] = LFUCache if policy == "lfu" else LRUCache
        self._entries: dict[str, _Entry[ValueT]] = {}
        # Whoever is used next, by importance: the size is counted here, not there.
        self._order: dict[float, Cache[str, None]] = {}
        self._index: dict[Facet, set[str]] = {}
        self._bytes = 0
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """How many bytes its values take."""
        return self._bytes

    def put(self, key: str, value: ValueT, facets: Iterable[Facet], size: int, priority: float = 0) -> list[str]:
        """Keep it in place of an older one; the keys that have had to go, which may be its own."""
        entry = _Entry(value, frozenset(each for each in facets if each[0] in self.indexed_keys), size, priority)
        with self._lock:
            self.pop(key)
            gone = self._make_room(size, priority)
            if self._bytes + size > self.max_bytes:
                return [*gone, key]
            self._entries[key] = entry
            self._bytes += size
            for facet in entry.facets:
                self._index.setdefault(facet, set()).add(key)
            self._order.setdefault(priority, self._kind(_UNBOUNDED))[key] = None
            return gone

    def get(self, key: str) -> ValueT | None:
        """It counts as used."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            _use = self._order[entry.priority][key]
            return entry.value

    def peek(self, key: str) -> ValueT | None:
        """It does not count as used."""
        with self._lock:
            entry = self._entries.get(key)
            return None if entry is None else entry.value

    def pop(self, key: str) -> ValueT | None:
        """Let it go; what it was."""
        with self._lock:
            if key not in self._entries:
                return None
            entry = self._take_out(key)
            del self._order[entry.priority][key]
            self._forget_level(entry.priority)
            return entry.value

    def with_facets(self, key: str, texts: Collection[str]) -> set[str]:
        """The keys of the values that have one of these texts under an indexed key."""
        with self._lock:
            return {found for text in texts for found in self._index.get((key, text), ())}

    def keys(self) -> list[str]:
        """Of all values, in no order that means anything."""
        with self._lock:
            return list(self._entries)

    def clear(self) -> int:
        """Let all go; how many there were."""
        with self._lock:
            count = len(self._entries)
            self._entries.clear()
            self._order.clear()
            self._index.clear()
            self._bytes = 0
            return count

    def _make_room(self, size: int, priority: float) -> list[str]:
        """As much as there is room to be made: nothing goes for what would not fit, or matters less."""
        gone = []
        while size <= self.max_bytes < self._bytes + size and (lowest := min(self._order)) <= priority:
            key, _ = self._order[lowest].popitem()
            self._forget_level(lowest)
            self._take_out(key)
            gone.append(key)
        return gone

    def _take_out(self, key: str) -> _Entry[ValueT]:
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

"""The units that an agent has at hand in its own process (spec 000 §4.3.2)."""

import threading
from collections.abc import Iterable
from copy import deepcopy

from cachetools import LRUCache

from bus_schema.kem import Kem
from bus_schema.kem_matching import matches_query, sorted_kems
from bus_schema.kem_query import KemQuery
from mindbus.sdk.kem_cache import IndexedKems
from mindbus.sdk.memory_failures import NotAtHand

MAX_BYTES = 64 * 1024**2
_REMEMBERED_CHANGES = 10_000


class LocalAgentMemory:
    """Those used last, found by their metadata. What is done to a unit that was handed out changes nothing here."""

    def __init__(self, indexed_keys: Iterable[str] = (), max_bytes: int = MAX_BYTES) -> None:
        self._kems = IndexedKems(max_bytes, indexed_keys)
        # An answer that was asked for before a change may be older than it.
        self._changed: LRUCache[str, int] = LRUCache(_REMEMBERED_CHANGES)
        self._changes = 0
        self._cleared = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kems)

    def get(self, kem_id: str) -> Kem | None:
        """None where it is not at hand."""
        kem = self._kems.get(kem_id)
        return None if kem is None else _copy(kem)

    def peek(self, kem_id: str) -> Kem | None:
        """The same, for whoever only looks at it: it does not count as used, it is no copy."""
        return self._kems.peek(kem_id)

    def query(self, query: KemQuery | None = None) -> list[Kem]:
        """Those that meet all that the question says, the newest first unless it names an order. Raises NotAtHand."""
        query = query or KemQuery()
        if query.is_ranked:
            raise NotAtHand(NotAtHand.__doc__)
        found = sorted_kems((kem for kem in self._kems.candidates(query) if matches_query(kem, query)), query)
        return [_copy(kem) for kem in found]

    def moment(self) -> int:
        """To be looked up before a unit is asked for, then given with the answer."""
        return self._changes

    def keep(self, kem: Kem, asked_at: int | None = None) -> None:
        """In place of an older one; where it has changed since it was asked for, nobody knows which that is: neither.

        Without the moment when it was asked for, it is news.
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
        """It is no longer to be had here."""
        with self._lock:
            self._note(kem_id)
            self._kems.pop(kem_id)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._changes += 1
            self._cleared = self._changes
            self._kems.clear()

    def _note(self, kem_id: str) -> None:
        self._changes += 1
        self._changed[kem_id] = self._changes


def _copy(kem: Kem) -> Kem:
    """All else in it is frozen."""
    return kem.model_copy(update={"metadata": deepcopy(kem.metadata)})

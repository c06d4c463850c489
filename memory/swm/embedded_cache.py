"""Units at hand in this process."""

from collections.abc import Collection

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.swm.cache import priority_of, texts_in
from memory.swm.matching import texts_wanted
from mindbus.indexed_cache import IndexedLRUCache, Policy

# What a unit takes besides its content, its metadata, its vector.
_OVERHEAD_BYTES = 2000


class EmbeddedCache:
    """A KemCache that goes with its process."""

    def __init__(self, max_bytes: int, indexed_keys: Collection[str], policy: Policy = "lru") -> None:
        self._kems: IndexedLRUCache[Kem] = IndexedLRUCache(max_bytes, indexed_keys, policy)
        self._evicted: list[str] = []

    async def open(self) -> None:
        """As in KemCache: whatever is left of an earlier lead may be out of date."""
        self._kems.clear()

    async def close(self) -> None:
        """Nothing to close."""

    async def get(self, kem_id: str) -> Kem | None:
        """As in KemCache."""
        return self._kems.get(kem_id)

    async def put(self, kem: Kem) -> None:
        """As in KemCache."""
        self._evicted += self._kems.put(kem.id, kem, texts_in(kem), _size_of(kem), priority_of(kem))

    async def drop(self, kem_id: str) -> bool:
        """As in KemCache."""
        return self._kems.pop(kem_id) is not None

    async def candidates(self, query: KemQuery) -> list[Kem]:
        """As in KemCache; to be looked at is not to be used."""
        kem_ids = set(query.ids) if query.ids else None
        for key, texts in texts_wanted(query.metadata_filters, self._kems.indexed_keys):
            found = self._kems.with_facets(key, texts)
            kem_ids = found if kem_ids is None else kem_ids & found
        kems = map(self._kems.peek, self._kems.keys() if kem_ids is None else kem_ids)
        return [kem for kem in kems if kem is not None]

    async def used(self, kem_ids: Collection[str]) -> None:
        """As in KemCache."""
        for kem_id in kem_ids:
            self._kems.get(kem_id)

    async def evicted(self) -> list[str]:
        """As in KemCache."""
        evicted, self._evicted = self._evicted, []
        return evicted

    async def clear(self) -> int:
        """As in KemCache."""
        return self._kems.clear()


def _size_of(kem: Kem) -> int:
    vector = 0 if kem.embeddings is None else len(kem.embeddings.data)
    return _OVERHEAD_BYTES + len((kem.content or "").encode()) + len(repr(kem.metadata)) + vector

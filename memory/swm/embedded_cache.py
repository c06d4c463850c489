"""Units at hand in this process."""

from collections.abc import Collection

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from mindbus.sdk.kem_cache import IndexedKems, Policy


class EmbeddedCache:
    """A KemCache that goes with its process."""

    def __init__(self, max_bytes: int, indexed_keys: Collection[str], policy: Policy = "lru") -> None:
        self._kems = IndexedKems(max_bytes, indexed_keys, policy)
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
        self._evicted += self._kems.keep(kem)

    async def drop(self, kem_id: str) -> bool:
        """As in KemCache."""
        return self._kems.pop(kem_id) is not None

    async def candidates(self, query: KemQuery) -> list[Kem]:
        """As in KemCache; to be looked at is not to be used."""
        return self._kems.candidates(query)

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

"""Where the units at hand lie: what the working memory asks of it."""

from collections.abc import Collection
from typing import Protocol

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery


class CacheAway(Exception):
    """The cache does not answer; start its Redis, or wait for it."""


class KemCache(Protocol):
    """Units by id, with an index on metadata; what it has no room for goes. All of it raises CacheAway."""

    async def open(self) -> None:
        """Be ready; what is gone since it was closed is told by `evicted`."""

    async def close(self) -> None: ...

    async def get(self, kem_id: str) -> Kem | None:
        """It counts as used."""

    async def put(self, kem: Kem) -> None:
        """Keep it in place of an older one of its id."""

    async def drop(self, kem_id: str) -> bool:
        """Whether it was there; nobody is told that it has been evicted."""

    async def candidates(self, query: KemQuery) -> list[Kem]:
        """At least all units that the question means, narrowed down as far as the indexes go."""

    async def used(self, kem_ids: Collection[str]) -> None:
        """These have been read."""

    async def evicted(self) -> list[str]:
        """The units that have had to go since it was asked last."""

    async def clear(self) -> int:
        """Drop all; how many there were."""

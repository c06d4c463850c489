"""What memory wants of an index of vectors, whichever it is."""

from collections.abc import Sequence
from typing import Protocol

from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from memory.embedding.space import EmbeddingSpace
from memory.vectors.points import Hit, Point
from mindbus.errors import MindBusError
from mindbus.principal import Principal


class IndexAway(MindBusError):
    """The index of vectors does not answer; what was being written may have been written, or not."""

    code = Code.UNAVAILABLE


class IndexOfAnotherSpace(MindBusError):
    """The index holds vectors of another model; set that model again, or make another index: mindbus glm rebuild."""

    code = Code.CONFLICT


class VectorIndex(Protocol):
    """Proposes units by nearness; which of them are so, rows decide, so that it may lag behind or find too much."""

    space: EmbeddingSpace

    async def exists(self) -> bool:
        """Whether there is one, even if nothing is in it. Raises IndexAway."""
        ...

    async def open(self) -> None:
        """Where there is none, it is made. Raises IndexAway, IndexOfAnotherSpace."""
        ...

    async def write(self, points: Sequence[Point], gone: Sequence[str]) -> None:
        """Have these points, in place of older ones; have none of the units `gone`. Raises IndexAway."""
        ...

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[Hit]:
        """The nearest first, among those that the question means, that the asker may read. Raises IndexAway."""
        ...

    async def versions(self) -> dict[str, int]:
        """Which version of each unit is there. Raises IndexAway."""
        ...

    async def clear(self) -> None:
        """Have none, whether or not there was an index, of whichever model. Raises IndexAway."""
        ...

    async def close(self) -> None:
        """Let go of files and connections."""
        ...

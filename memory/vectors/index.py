"""What memory wants of an index of vectors, whichever it is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import NAMESPACE_URL, uuid5

from pydantic import JsonValue

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from memory.embedding.space import EmbeddingSpace
from mindbus.errors import MindBusError
from mindbus.principal import Principal

PREFIX = "md_"
_NAMESPACE = uuid5(NAMESPACE_URL, "urn:mindbus:kem")


class NearKem(NamedTuple):
    """A unit that lies near, by the cosine."""

    kem_id: str
    score: float


@dataclass(frozen=True, slots=True)
class VectorPoint:
    """A vector, as the bytes of its float32 numbers, with what it can be filtered by."""

    kem_id: str
    version: int
    vector: bytes
    payload: Mapping[str, Any]


def point_id(kem_id: str) -> str:
    """Indexes know points by UUID, whereas any word may be the id of a unit; that is in `kem_id_ref`."""
    return str(uuid5(_NAMESPACE, kem_id))


def point_of(kem: Kem, vector: bytes, readers: Iterable[str]) -> VectorPoint:
    """`md_*` are the plain values of metadata, times are in whole seconds; the rest is for rights and for checks."""
    payload = {
        "kem_id_ref": kem.id,
        **{PREFIX + key: plain for key, value in kem.metadata.items() if (plain := _plain(value)) is not None},
        "created_at_ts": epoch_seconds(kem.created_at),
        "updated_at_ts": epoch_seconds(kem.updated_at),
        "kem_version": kem.version,
        "owner": kem.owner,
        "visibility": kem.visibility,
        "readers": list(readers),
    }
    return VectorPoint(kem.id, kem.version, vector, payload)


def epoch_seconds(time: datetime) -> int:
    """The second in which it was: an index finds too much rather than too little, rows decide."""
    return math.floor(time.timestamp())


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [member for member in value if isinstance(member, str | bool | int | float)]
    return value if isinstance(value, str | bool | int | float) else None


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

    async def write(self, points: Sequence[VectorPoint], gone: Sequence[str]) -> None:
        """Have these points, in place of older ones; have none of the units `gone`. Raises IndexAway."""
        ...

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
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

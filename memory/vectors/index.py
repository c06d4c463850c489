"""Interface of the vector indexes, and their points (spec 000 §4.1.1)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import NAMESPACE_URL, uuid5

from pydantic import JsonValue

from bus_schema.identities import Principal
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from mindbus.errors import MindBusError, Rejected, TemporaryFailure
from retrieval.embedding.embedder import EmbeddingSpace

PREFIX = "md_"
_NAMESPACE = uuid5(NAMESPACE_URL, "urn:mindbus:kem")


class NearKem(NamedTuple):
    """Result of a search: a unit and its cosine."""

    kem_id: str
    score: float


# Present in the payload of those units that hold for a time.
VALID_FROM, VALID_TO = "valid_from_ts", "valid_to_ts"


@dataclass(frozen=True, slots=True)
class VectorPoint:
    """Vector, as bytes of little-endian float32, and the payload that it can be filtered by."""

    kem_id: str
    version: int
    vector: bytes
    payload: Mapping[str, Any]


def point_id(kem_id: str) -> str:
    """UUID of a unit's point, as Qdrant requires; the unit's own id is in `kem_id_ref`."""
    return str(uuid5(_NAMESPACE, kem_id))


def point_of(kem: Kem, vector: bytes, readers: Iterable[str]) -> VectorPoint:
    """Point of a unit: `md_*` are scalar metadata, times are whole seconds, the rest is for rights and checks."""
    payload = {
        "kem_id_ref": kem.id,
        **{PREFIX + key: plain for key, value in kem.metadata.items() if (plain := _plain(value)) is not None},
        "created_at_ts": epoch_seconds(kem.created_at),
        "updated_at_ts": epoch_seconds(kem.updated_at),
        **({} if kem.valid_from is None else {VALID_FROM: epoch_seconds(kem.valid_from)}),
        **({} if kem.valid_to is None else {VALID_TO: epoch_seconds(kem.valid_to)}),
        "kem_version": kem.version,
        "owner": kem.owner,
        "visibility": kem.visibility,
        "readers": list(readers),
    }
    return VectorPoint(kem.id, kem.version, vector, payload)


def epoch_seconds(time: datetime) -> int:
    """Whole seconds: the index may find too much by a second, rows decide."""
    return math.floor(time.timestamp())


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [member for member in value if isinstance(member, str | bool | int | float)]
    return value if isinstance(value, str | bool | int | float) else None


class IndexAway(TemporaryFailure):
    """The index of vectors does not answer; what was being written may have been written, or not."""

    def __init__(self, message: str | None = None) -> None:
        # Searchers wait for the answer: try again soon.
        super().__init__(message, timedelta(seconds=1))


class IndexRefused(Rejected, code=Code.CONFLICT):
    """The server of the vectors refuses the request, and would again; its words say why."""


class IndexOfAnotherSpace(MindBusError, code=Code.CONFLICT):
    """The index holds vectors of another model; set that model again, or make another index: mindbus glm rebuild."""


class VectorIndex(Protocol):
    """Proposes the nearest units; it may lag behind or find too much, since rows decide.

    One that `is_shared` is the same for every machine; any other lies in the folder of one process. All but `close`
    raise IndexAway, and IndexRefused where a server refuses for good.
    """

    space: EmbeddingSpace
    is_shared: bool

    async def exists(self) -> bool:
        """True if the index has been created, even if it is empty."""

    async def open(self) -> None:
        """Open or create the index. Raises IndexOfAnotherSpace."""

    async def write(self, points: Sequence[VectorPoint], deleted_ids: Sequence[str]) -> None:
        """Add or replace points, remove those of the units `deleted_ids`."""

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        """Up to `limit` readable units that match the query, nearest first."""

    async def versions(self) -> dict[str, int]:
        """Indexed version of each unit."""

    async def clear(self) -> None:
        """Replace the index, if there is one, by an empty one of this space."""

    async def close(self) -> None:
        """Close files and connections."""

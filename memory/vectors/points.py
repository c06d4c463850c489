"""Units as an index of vectors sees them (spec 000 §4.1.1)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from pydantic import JsonValue

from bus_schema.kem import Kem

PREFIX = "md_"
_NAMESPACE = uuid5(NAMESPACE_URL, "urn:mindbus:kem")


class Hit(NamedTuple):
    """A unit that lies near, by the cosine."""

    kem_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Point:
    """A vector, as the bytes of its float32 numbers, with what it can be filtered by."""

    kem_id: str
    version: int
    vector: bytes
    payload: Mapping[str, Any]


def point_id(kem_id: str) -> str:
    """Indexes know points by UUID, whereas any word may be the id of a unit; that is in `kem_id_ref`."""
    return str(uuid5(_NAMESPACE, kem_id))


def point_of(kem: Kem, vector: bytes, readers: Iterable[str]) -> Point:
    """`md_*` are the plain values of metadata, times are in whole seconds; the rest is for rights and for checks."""
    payload = {
        "kem_id_ref": kem.id,
        **{PREFIX + key: plain for key, value in kem.metadata.items() if (plain := _plain(value)) is not None},
        "created_at_ts": seconds(kem.created_at),
        "updated_at_ts": seconds(kem.updated_at),
        "kem_version": kem.version,
        "owner": kem.owner,
        "visibility": kem.visibility,
        "readers": list(readers),
    }
    return Point(kem.id, kem.version, vector, payload)


def seconds(time: datetime) -> int:
    """The second in which it was: an index finds too much rather than too little, rows decide."""
    return math.floor(time.timestamp())


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [member for member in value if isinstance(member, str | bool | int | float)]
    return value if isinstance(value, str | bool | int | float) else None

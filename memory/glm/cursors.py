"""Cursors that go with one question alone."""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from bus_schema.kem_query import KemQuery
from memory.refusals import NotACursor

# Who reads on for so long wants an order, not a ranking.
MAX_RANK = 10_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: after the unit `kem_id`, whose time it was sorted by is `time`."""

    kem_id: str
    time: datetime


def cursor_after(place: Place, query: KemQuery) -> str:
    """What the asker brings for the next page; it says nothing that the page did not."""
    return _cursor(query, place.kem_id, place.time.isoformat())


def place_of(cursor: str | None, query: KemQuery) -> Place | None:
    """Where to go on. Raises NotACursor, also where it was given with another question."""
    match _parts(cursor, query):
        case None:
            return None
        case [str(kem_id), str(time)] if kem_id.isascii() and kem_id.isprintable():
            try:
                place = Place(kem_id, datetime.fromisoformat(time))
            except ValueError:
                raise NotACursor(reason="is none at all") from None
            if place.time.tzinfo is not None:
                return place
    raise NotACursor(reason="is none at all")


def cursor_at(rank: int, query: KemQuery) -> str:
    """The same of what is ranked, by how much of it has been seen."""
    return _cursor(query, rank)


def rank_of(cursor: str | None, query: KemQuery) -> int:
    """How much has been seen. Raises NotACursor."""
    match _parts(cursor, query):
        case None:
            return 0
        case [int(rank)] if 0 < rank <= MAX_RANK:
            return rank
    raise NotACursor(reason="is none at all")


def _cursor(query: KemQuery, *parts: object) -> str:
    text = json.dumps([_digest(query), *parts], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _parts(cursor: str | None, query: KemQuery) -> list[object] | None:
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        decoded: list[object] = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        digest, *parts = decoded
    except (binascii.Error, ValueError, TypeError):
        raise NotACursor(reason="is none at all") from None
    if not isinstance(digest, str) or len(digest) != len(_digest(query)):
        raise NotACursor(reason="is none at all")
    if digest != _digest(query):
        raise NotACursor(reason="belongs to another question")
    return parts


def _digest(query: KemQuery) -> str:
    return hashlib.sha256(query.model_dump_json().encode()).hexdigest()[:16]

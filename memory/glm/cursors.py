"""Cursors that go with one question alone."""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from bus_schema.kem_query import KemQuery
from memory.refusals import NotACursor


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: after the unit `kem_id`, whose time it was sorted by is `time`."""

    kem_id: str
    time: datetime


def cursor_after(place: Place, query: KemQuery) -> str:
    """What the asker brings for the next page; it says nothing that the page did not."""
    text = json.dumps([_digest(query), place.kem_id, place.time.isoformat()], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place_of(cursor: str | None, query: KemQuery) -> Place | None:
    """Where to go on. Raises NotACursor, also where it was given with another question."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        digest, kem_id, time = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        place = Place(str(kem_id), datetime.fromisoformat(time))
    except (binascii.Error, ValueError, TypeError):
        raise NotACursor(reason="is none at all") from None
    if not (place.kem_id.isascii() and place.kem_id.isprintable()) or place.time.tzinfo is None:
        raise NotACursor(reason="is none at all")
    if digest != _digest(query):
        raise NotACursor(reason="belongs to another question")
    return place


def _digest(query: KemQuery) -> str:
    return hashlib.sha256(query.model_dump_json().encode()).hexdigest()[:16]

"""Page cursors: opaque text that says where a page ended, and whose page it was."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar

from mindbus.errors import Rejected

T = TypeVar("T")

# The longest decimal number that fits a 64-bit column.
_DIGITS = 18


class InvalidCursor(Rejected, ValueError):
    """The cursor is not one that this query was given; start again without it."""


@dataclass(frozen=True, slots=True)
class PageKey:
    """Keyset position in an order by time, then by id: the last item of a page."""

    time: datetime
    id: str

    @classmethod
    def parse(cls, time: object, item_id: object) -> Self:
        """The two parts as cursors have them: an ISO time with an offset, a printable id. Raises InvalidCursor."""
        if not (isinstance(time, str) and isinstance(item_id, str) and item_id and item_id.isprintable()):
            raise InvalidCursor
        try:
            key = cls(datetime.fromisoformat(time), item_id)
        except ValueError:
            raise InvalidCursor from None
        if key.time.tzinfo is None:
            raise InvalidCursor
        return key

    @classmethod
    def parse_plain(cls, cursor: str) -> Self:
        """The readable form, `{time} {id}`. Raises InvalidCursor."""
        time, _, item_id = cursor.partition(" ")
        return cls.parse(time, item_id)

    @property
    def plain(self) -> str:
        return f"{self.time.isoformat()} {self.id}"


def encode_cursor(*parts: str | int, scope: str | None = None) -> str:
    """URL-safe base64 of the parts as a JSON list; a cursor with a scope is good for that scope alone."""
    values = parts if scope is None else (scope, *parts)
    text = json.dumps(values, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *, scope: str | None = None) -> list[object]:
    """The parts that it was made of. Raises InvalidCursor."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts: object = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        raise InvalidCursor(reason="not a cursor") from None
    if not isinstance(parts, list):
        raise InvalidCursor(reason="not a cursor")
    if scope is None:
        return parts
    if not (parts and isinstance(parts[0], str) and len(parts[0]) == len(scope)):
        raise InvalidCursor(reason="not a cursor")
    if parts[0] != scope:
        raise InvalidCursor(reason="belongs to another question")
    return parts[1:]


def split_page(rows: Sequence[T], limit: int) -> tuple[Sequence[T], T | None]:
    """A page of rows read with `limit + 1`; with its last row where another page follows."""
    return rows[:limit], rows[limit - 1] if len(rows) > limit else None


def digest_of(query: str) -> str:
    """Scope of the cursors of one query: 16 hex digits of its SHA-256."""
    return hashlib.sha256(query.encode()).hexdigest()[:16]


def position_of(cursor: str | None) -> int:
    """Position in an order that only grows, a decimal number; 0 without a cursor. Raises InvalidCursor."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _DIGITS):
        raise InvalidCursor(cursor=cursor)
    return int(cursor)

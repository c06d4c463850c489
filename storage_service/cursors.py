"""Cursors that are a position in an order that only grows."""

from storage_service.refusals import NotACursor

# The longest number that fits the column.
_DIGITS = 18


def position_of(cursor: str | None) -> int:
    """The position after which a page begins. Raises NotACursor."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _DIGITS):
        raise NotACursor(cursor=cursor)
    return int(cursor)

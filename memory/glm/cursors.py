"""Cursors of the global memory: each is good for one query alone."""

from bus_schema.kem_query import KemQuery
from retrieval.cursors import InvalidCursor, PageKey, decode_cursor, digest_of, encode_cursor

# A reader who goes on for so long wants an order, not a ranking.
MAX_RANK = 10_000


def cursor_after(key: PageKey, query: KemQuery) -> str:
    """Cursor of the page after this unit; it tells nothing that the page did not."""
    return encode_cursor(key.id, key.time.isoformat(), scope=_scope(query))


def page_key_of(cursor: str | None, query: KemQuery) -> PageKey | None:
    """Key of the last item before the page. Raises InvalidCursor, also where it was given with another query."""
    if cursor is None:
        return None
    match decode_cursor(cursor, scope=_scope(query)):
        case [kem_id, time]:
            return PageKey.parse(time, kem_id)
    raise InvalidCursor(reason="not a cursor")


def cursor_at(rank: int, query: KemQuery) -> str:
    """Cursor of a ranked page: the number of results before it."""
    return encode_cursor(rank, scope=_scope(query))


def rank_of(cursor: str | None, query: KemQuery) -> int:
    """Number of results before the page. Raises InvalidCursor."""
    if cursor is None:
        return 0
    match decode_cursor(cursor, scope=_scope(query)):
        case [int(rank)] if 0 < rank <= MAX_RANK:
            return rank
    raise InvalidCursor(reason="not a cursor")


def _scope(query: KemQuery) -> str:
    return digest_of(query.model_dump_json())

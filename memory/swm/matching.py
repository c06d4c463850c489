"""The pages in which units at hand are handed out (spec 000 §7.2.1)."""

from collections.abc import Iterable
from datetime import UTC, datetime

from bus_schema.glm import FoundKem, KemPage
from bus_schema.kem import Kem
from bus_schema.kem_matching import matches_query, order_of, sorted_kems
from bus_schema.kem_query import KemQuery
from memory.glm.cursors import cursor_after, page_key_of
from memory.swm.rights import is_readable
from mindbus.principal import Principal
from retrieval.cursors import PageKey

_ANY_TIME = datetime.min.replace(tzinfo=UTC)


def page_of(kems: Iterable[Kem], query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
    """Of these units, those that are meant, that the asker may read; cursors are those of the global memory.

    Raises InvalidCursor.
    """
    last = page_key_of(cursor, query)
    name, is_descending = order_of(query)

    def rank(place: PageKey) -> tuple[datetime, str]:
        # No two units have the same place.
        return (_ANY_TIME if name == "id" else place.time, place.id)

    def place_in(kem: Kem) -> PageKey:
        return PageKey(kem.updated_at if name == "updated_at" else kem.created_at, kem.id)

    found = sorted_kems((kem for kem in kems if is_readable(kem, principal) and matches_query(kem, query)), query)
    if last is not None:
        after = rank(last)
        found = [kem for kem in found if (place := rank(place_in(kem))) != after and (place < after) is is_descending]
    page = found[:page_size]
    next_cursor = cursor_after(place_in(page[-1]), query) if len(found) > page_size else None
    return KemPage(items=tuple(FoundKem(kem=kem) for kem in page), next_cursor=next_cursor)

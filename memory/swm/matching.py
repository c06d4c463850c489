"""Which units at hand a question means, in which order (spec 000 §7.2.1)."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from bus_schema.glm import FoundKem, KemPage
from bus_schema.kem import Kem
from bus_schema.kem_query import AllOf, KemQuery, MetadataFilter, OneOf
from memory.asker import Asker
from memory.glm.cursors import Place, cursor_after, place_of
from memory.metadata import meets
from memory.swm.rights import is_readable

_NEWEST = "updated_at desc"
_ANY_TIME = datetime.min.replace(tzinfo=UTC)


def is_meant(kem: Kem, query: KemQuery) -> bool:
    """All that a question gives is ANDed."""
    return (
        (not query.ids or kem.id in query.ids)
        and _within(kem.created_at, query.created_at_start, query.created_at_end)
        and _within(kem.updated_at, query.updated_at_start, query.updated_at_end)
        and meets(kem.metadata, query.metadata_filters)
    )


def texts_wanted(wanted: MetadataFilter, indexed_keys: Collection[str]) -> list[tuple[str, tuple[str, ...]]]:
    """The conditions that an index of texts answers: an indexed key, one of whose values must be one of these."""
    match wanted:
        case AllOf(AND=parts):
            return [each for part in parts for each in texts_wanted(part, indexed_keys)]
        case dict():
            texts = ((key, _texts_of(condition)) for key, condition in wanted.items() if key in indexed_keys)
            return [(key, found) for key, found in texts if found]
        case _:
            return []


def page_of(kems: Iterable[Kem], query: KemQuery, asker: Asker, cursor: str | None, page_size: int) -> KemPage:
    """Of these units, those that are meant, that the asker may read; cursors are those of the global memory.

    Raises NotACursor.
    """
    last = place_of(cursor, query)
    name, direction = (query.order_by or _NEWEST).split()
    is_descending = direction == "desc"

    def rank(place: Place) -> tuple[datetime, str]:
        # No two units have the same place.
        return (_ANY_TIME if name == "id" else place.time, place.kem_id)

    def place_in(kem: Kem) -> Place:
        return Place(kem.id, kem.updated_at if name == "updated_at" else kem.created_at)

    found = [kem for kem in kems if is_readable(kem, asker) and is_meant(kem, query)]
    found.sort(key=lambda kem: rank(place_in(kem)), reverse=is_descending)
    if last is not None:
        after = rank(last)
        found = [kem for kem in found if (place := rank(place_in(kem))) != after and (place < after) is is_descending]
    page = found[:page_size]
    next_cursor = cursor_after(place_in(page[-1]), query) if len(found) > page_size else None
    return KemPage(items=tuple(FoundKem(kem=kem) for kem in page), next_cursor=next_cursor)


def _within(time: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or time >= start) and (end is None or time <= end)


def _texts_of(condition: object) -> tuple[str, ...]:
    """None where a number or a truth would do as well: those are not indexed."""
    values = condition.any_of if isinstance(condition, OneOf) else (condition,)
    texts = tuple(value for value in values if isinstance(value, str))
    return texts if len(texts) == len(values) else ()

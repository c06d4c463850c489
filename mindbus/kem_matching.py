"""Which units a question means that asks for no nearness (spec 000 §7.2.1)."""

from collections.abc import Collection, Iterable
from datetime import datetime

from bus_schema.kem import Kem
from bus_schema.kem_query import AllOf, KemQuery, MetadataFilter, OneOf
from mindbus.metadata import facets, meets

_NEWEST = "updated_at desc"


def is_meant(kem: Kem, query: KemQuery) -> bool:
    """All that a question gives is ANDed."""
    return (
        (not query.ids or kem.id in query.ids)
        and _within(kem.created_at, query.created_at_start, query.created_at_end)
        and _within(kem.updated_at, query.updated_at_start, query.updated_at_end)
        and meets(kem.metadata, query.metadata_filters)
    )


def order_of(query: KemQuery) -> tuple[str, bool]:
    """By what the answer is ordered, whether it begins with the last: the newest `updated_at` comes first."""
    name, direction = (query.order_by or _NEWEST).split()
    return name, direction == "desc"


def in_order(kems: Iterable[Kem], query: KemQuery) -> list[Kem]:
    """As the question asks; no two have the same place."""
    name, is_descending = order_of(query)
    return sorted(kems, key=lambda kem: (getattr(kem, name), kem.id), reverse=is_descending)


def texts_in(kem: Kem) -> list[tuple[str, str]]:
    """What of its metadata can be indexed: texts alone, members of lists included."""
    return [(key, value) for key, value in facets(kem.metadata) if isinstance(value, str)]


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


def _within(time: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or time >= start) and (end is None or time <= end)


def _texts_of(condition: object) -> tuple[str, ...]:
    """None where a number or a truth would do as well: those are not indexed."""
    values = condition.any_of if isinstance(condition, OneOf) else (condition,)
    texts = tuple(value for value in values if isinstance(value, str))
    return texts if len(texts) == len(values) else ()

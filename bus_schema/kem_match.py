"""Evaluation of KEM queries in memory: filters on ids, times and metadata, and the order (spec 000 §7.2.1)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from pydantic import JsonValue

from bus_schema.kem import Kem
from bus_schema.kem_query import (
    MAX_FILTER_CHARS,
    AllOf,
    AnyOf,
    Between,
    Condition,
    KemQuery,
    MetadataFilter,
    NoneOf,
    OneOf,
)

Facet = bool | float | str

_NEWEST = "updated_at desc"


def matches_query(kem: Kem, query: KemQuery) -> bool:
    """True if the unit meets every condition of the query, similarity apart."""
    return (
        (not query.ids or kem.id in query.ids)
        and _within(kem.created_at, query.created_at_start, query.created_at_end)
        and _within(kem.updated_at, query.updated_at_start, query.updated_at_end)
        and meets_filter(kem.metadata, query.metadata_filters)
        and (query.holds_at is None or holds_at(kem, query.holds_at, query.known_at))
    )


def holds_at(kem: Kem, time: datetime, known_at: datetime | None = None) -> bool:
    """Whether the unit says of itself that it holds then, as far as was known at a time, by default now."""
    ends = kem.valid_to
    if known_at is not None:
        if kem.created_at > known_at:
            return False
        ends = None if kem.end_learnt_at is not None and kem.end_learnt_at > known_at else ends
    return (kem.valid_from is None or kem.valid_from <= time) and (ends is None or time < ends)


def order_of(query: KemQuery) -> tuple[str, bool]:
    """Field that the results are sorted by, and whether descending; without one, the newest `updated_at` first."""
    name, direction = (query.order_by or _NEWEST).split()
    return name, direction == "desc"


def sorted_kems(kems: Iterable[Kem], query: KemQuery) -> list[Kem]:
    """Units in the order of the query, equal times by id."""
    name, is_descending = order_of(query)
    return sorted(kems, key=lambda kem: (getattr(kem, name), kem.id), reverse=is_descending)


def indexable_texts(kem: Kem) -> list[tuple[str, str]]:
    """Metadata values that an index of texts holds, by key: strings, members of lists included."""
    return [(key, value) for key, value in facets(kem.metadata) if isinstance(value, str)]


def required_texts(conditions: MetadataFilter, indexed_keys: Collection[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Conditions that an index of texts can answer: an indexed key and the texts of which it must have one."""
    match conditions:
        case AllOf(AND=parts):
            return [each for part in parts for each in required_texts(part, indexed_keys)]
        case dict():
            texts = ((key, _texts_of(condition)) for key, condition in conditions.items() if key in indexed_keys)
            return [(key, values) for key, values in texts if values]
        case _:
            return []


def _within(time: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or time >= start) and (end is None or time <= end)


def _texts_of(condition: object) -> tuple[str, ...]:
    """Empty if a number or a boolean would satisfy the condition too: those are not indexed."""
    values = condition.any_of if isinstance(condition, OneOf) else (condition,)
    texts = tuple(value for value in values if isinstance(value, str))
    return texts if len(texts) == len(values) else ()


def facets(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, Facet]]:
    """Values that a condition can be about, by key: scalars and members of lists; nothing nested deeper or too long."""
    for key, value in metadata.items():
        for member in value if isinstance(value, list) else [value]:
            if isinstance(member, str):
                if len(member) <= MAX_FILTER_CHARS:
                    yield key, member
            elif isinstance(member, bool | int | float):
                yield key, member


def meets_filter(metadata: Mapping[str, JsonValue], conditions: MetadataFilter) -> bool:
    """True if a unit with this metadata meets the filter."""
    values: dict[str, list[Facet]] = {}
    for key, facet in facets(metadata):
        values.setdefault(key, []).append(facet)
    return _meets(values, conditions)


def _meets(values: Mapping[str, list[Facet]], conditions: MetadataFilter) -> bool:
    match conditions:
        case AllOf(AND=parts):
            return all(_meets(values, part) for part in parts)
        case AnyOf(OR=parts):
            return any(_meets(values, part) for part in parts)
        case NoneOf(NOT=part):
            return not _meets(values, part)
        case _:
            return all(
                any(_holds(condition, facet) for facet in values.get(key, ())) for key, condition in conditions.items()
            )


def _holds(condition: Condition, facet: Facet) -> bool:
    match condition:
        case OneOf(any_of=options):
            return any(_equal(value, facet) for value in options)
        case Between():
            return condition.holds(facet)
        case _:
            return _equal(condition, facet)


def _equal(value: Facet, facet: Facet) -> bool:
    return value == facet and isinstance(value, bool) == isinstance(facet, bool)

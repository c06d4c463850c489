"""What can be looked for in metadata, by which rules."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from bus_schema.kem_query import MAX_FILTER_CHARS, AllOf, AnyOf, Between, Condition, MetadataFilter, NoneOf, OneOf

Facet = bool | float | str


def facets(metadata: Mapping[str, JsonValue]) -> Iterator[tuple[str, Facet]]:
    """Each value that a condition may be about: scalars, members of lists; not what is nested deeper, or long."""
    for key, value in metadata.items():
        for member in value if isinstance(value, list) else [value]:
            if isinstance(member, str):
                if len(member) <= MAX_FILTER_CHARS:
                    yield key, member
            elif isinstance(member, bool | int | float):
                yield key, member


def meets(metadata: Mapping[str, JsonValue], wanted: MetadataFilter) -> bool:
    """Whether a unit with this metadata is meant."""
    found: dict[str, list[Facet]] = {}
    for key, facet in facets(metadata):
        found.setdefault(key, []).append(facet)
    return _meets(found, wanted)


def _meets(found: Mapping[str, list[Facet]], wanted: MetadataFilter) -> bool:
    match wanted:
        case AllOf(AND=parts):
            return all(_meets(found, part) for part in parts)
        case AnyOf(OR=parts):
            return any(_meets(found, part) for part in parts)
        case NoneOf(NOT=part):
            return not _meets(found, part)
        case _:
            return all(
                any(_holds(condition, facet) for facet in found.get(key, ())) for key, condition in wanted.items()
            )


def _holds(condition: Condition, facet: Facet) -> bool:
    match condition:
        case OneOf(any_of=values):
            return any(_equal(value, facet) for value in values)
        case Between(gt=gt, gte=gte, lt=lt, lte=lte):
            # Truth is no number here, though it is one in Python.
            return (
                isinstance(facet, int | float)
                and not isinstance(facet, bool)
                and (gt is None or facet > gt)
                and (gte is None or facet >= gte)
                and (lt is None or facet < lt)
                and (lte is None or facet <= lte)
            )
        case _:
            return _equal(condition, facet)


def _equal(value: Facet, facet: Facet) -> bool:
    return value == facet and isinstance(value, bool) == isinstance(facet, bool)

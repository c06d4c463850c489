"""Questions in the words of Qdrant."""

import re
from collections.abc import Iterator

from qdrant_client import models

from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf, Scalar
from memory.vectors.points import PREFIX, point_id, seconds
from mindbus.principal import Principal

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def filter_of(query: KemQuery, principal: Principal) -> models.Filter:
    """All that a question says apart from nearness, for what the asker may read."""
    must: list[models.Condition] = [_meeting(query.metadata_filters), *_in_time(query)]
    if query.ids:
        must.append(models.HasIdCondition(has_id=[point_id(kem_id) for kem_id in query.ids]))
    if not principal.is_trusted:
        must.append(_readable(principal))
    return models.Filter(must=must)


def _readable(principal: Principal) -> models.Filter:
    return models.Filter(
        should=[
            _matching("visibility", "public"),
            _matching("owner", principal.owner),
            _matching("readers", principal.owner),
        ]
    )


def _in_time(query: KemQuery) -> Iterator[models.Condition]:
    spans = (
        ("created_at_ts", query.created_at_start, query.created_at_end),
        ("updated_at_ts", query.updated_at_start, query.updated_at_end),
    )
    for key, start, end in spans:
        if start is not None or end is not None:
            bounds = models.Range(
                gte=None if start is None else seconds(start), lte=None if end is None else seconds(end)
            )
            yield models.FieldCondition(key=key, range=bounds)


def _meeting(wanted: MetadataFilter) -> models.Filter:
    match wanted:
        case AllOf(AND=parts):
            return models.Filter(must=[_meeting(part) for part in parts])
        case AnyOf(OR=parts):
            return models.Filter(should=[_meeting(part) for part in parts])
        case NoneOf(NOT=part):
            return models.Filter(must_not=[_meeting(part)])
        case _:
            return models.Filter(must=[_having(_path(key), condition) for key, condition in wanted.items()])


def _having(path: str, condition: Condition) -> models.Condition:
    match condition:
        case OneOf(any_of=values):
            return models.Filter(should=[_matching(path, value) for value in values])
        case Between(gt=gt, gte=gte, lt=lt, lte=lte):
            return models.FieldCondition(key=path, range=models.Range(gt=gt, gte=gte, lt=lt, lte=lte))
        case _:
            return _matching(path, condition)


def _matching(path: str, value: Scalar) -> models.FieldCondition:
    if isinstance(value, str | bool):
        return models.FieldCondition(key=path, match=models.MatchValue(value=value))
    # 1 is also 1.0, which to a match are two things.
    return models.FieldCondition(key=path, range=models.Range(gte=value, lte=value))


def _path(key: str) -> str:
    """A dot would lead into an object."""
    name = PREFIX + key
    return name if _PLAIN_KEY.fullmatch(name) else f'"{name}"'

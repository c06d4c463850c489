"""What a person types of metadata and filters, as memory knows it."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bus_schema.envelope import explain
from bus_schema.kem_query import KemQuery
from memory.filters import Both, Either, Equals, Filter, parse_filter
from memory.refusals import MalformedFilter
from mindbus.cli.failures import Misused

ModelT = TypeVar("ModelT", bound=BaseModel)
_METADATA = "metadata."


def valid(kind: type[ModelT], fields: dict[str, Any]) -> ModelT:
    """Raises Misused."""
    try:
        return kind.model_validate(fields)
    except ValidationError as invalid:
        raise Misused(explain(invalid)) from invalid


def parse_metadata(pairs: Sequence[str]) -> dict[str, Any]:
    """K=V is a text, K:=V whatever V is in JSON. Raises Misused."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        is_json = key.endswith(":")
        if not equals or not key.rstrip(":"):
            raise Misused(f"--meta {pair!r} is not K=V, nor K:=JSON")
        try:
            found[key.removesuffix(":")] = json.loads(value) if is_json else value
        except ValueError as wrong:
            raise Misused(f"--meta {pair!r}: what follows := is not JSON: {wrong}") from wrong
    return found


def filter_of(text: str | None) -> Filter:
    """Raises Misused, which shows the position."""
    try:
        return parse_filter(text or "")
    except MalformedFilter as malformed:
        raise Misused(str(malformed)) from malformed


def query_of(text: str | None, **fields: Any) -> KemQuery:
    """A question with the filter's conditions in it. Raises Misused where a question cannot say them."""
    found = filter_of(text)
    parts = found.parts if isinstance(found, Both) else (found,)
    named = [ids for ids in map(_ids, parts) if ids]
    if len(named) > 1:
        raise Misused("kem_id can be asked for once: join several by OR")
    trees = [_tree(part) for part in parts if not _ids(part)]
    filters: dict[str, Any] = {"metadata_filters": {"AND": trees}} if trees else {}
    return valid(KemQuery, filters | ({"ids": named[0]} if named else {}) | fields)


def _ids(part: Filter) -> tuple[str, ...]:
    """The ids of which a unit must have one, if that is all that this part says."""
    match part:
        case Equals(name="kem_id", value=kem_id):
            return (kem_id,)
        case Either(parts=parts) if all(map(_ids, parts)):
            return tuple(kem_id for each in parts for kem_id in _ids(each))
    return ()


def _tree(part: Filter) -> dict[str, Any]:
    match part:
        case Both(parts=parts):
            return {"AND": list(map(_tree, parts))}
        case Either(parts=parts):
            return {"OR": list(map(_tree, parts))}
        case Equals(name=name, value=value) if name.startswith(_METADATA):
            return {name.removeprefix(_METADATA): {"any_of": _readings(value)}}
    raise Misused(f"{part.name} cannot be joined with other conditions here; event types are for `memory watch`")


def _readings(text: str) -> list[str | int | float | bool]:
    """As a text, and as the number or truth that it may be."""
    try:
        scalar = json.loads(text)
    except ValueError:
        return [text]
    return [text, scalar] if isinstance(scalar, bool | int | float) else [text]

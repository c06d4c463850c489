"""What a person types of metadata and filters, as memory knows it."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bus_schema.envelope import explain
from bus_schema.kem_query import KemQuery
from memory.errors import MalformedFilter
from memory.filters import Filter, parse_filter
from memory.questions import UnsupportedQuery, query_from
from mindbus.cli.errors import UsageError

ModelT = TypeVar("ModelT", bound=BaseModel)


def valid(kind: type[ModelT], fields: dict[str, Any]) -> ModelT:
    """Raises UsageError."""
    try:
        return kind.model_validate(fields)
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid


def parse_metadata(pairs: Sequence[str]) -> dict[str, Any]:
    """K=V is a text, K:=V whatever V is in JSON. Raises UsageError."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        is_json = key.endswith(":")
        if not equals or not key.rstrip(":"):
            raise UsageError(f"--meta {pair!r} is not K=V, nor K:=JSON")
        try:
            found[key.removesuffix(":")] = json.loads(value) if is_json else value
        except ValueError as wrong:
            raise UsageError(f"--meta {pair!r}: what follows := is not JSON: {wrong}") from wrong
    return found


def filter_of(text: str | None) -> Filter:
    """Raises UsageError, which shows the position."""
    try:
        return parse_filter(text or "")
    except MalformedFilter as malformed:
        raise UsageError(str(malformed)) from malformed


def query_of(text: str | None, **fields: Any) -> KemQuery:
    """A question with the filter's conditions in it. Raises UsageError where a question cannot say them."""
    try:
        return query_from(text or "", **fields)
    except (MalformedFilter, UnsupportedQuery) as wrong:
        raise UsageError(str(wrong)) from wrong
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid

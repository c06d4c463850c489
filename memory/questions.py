"""Questions to memory, as people write them."""

import json
from typing import Any

from bus_schema.kem_query import KemQuery
from memory.filters import Both, Either, FieldEquals, Filter, parse_filter
from mindbus.errors import Rejected

_METADATA = "metadata."


class UnsupportedQuery(Rejected):
    """A question asks for metadata, and for kem_id once, joined with all else by AND."""

    def __init__(self, what: str) -> None:
        super().__init__(what=what)
        self._what = what

    def __str__(self) -> str:
        return self._what


def query_from(text: str, **fields: Any) -> KemQuery:
    """A question with a filter's conditions in it. Raises MalformedFilter, UnsupportedQuery, ValidationError."""
    found = parse_filter(text)
    parts = found.parts if isinstance(found, Both) else (found,)
    named = [ids for ids in map(_ids, parts) if ids]
    if len(named) > 1:
        raise UnsupportedQuery("kem_id can be asked for once: join several by OR")
    trees = [_tree(part) for part in parts if not _ids(part)]
    filters: dict[str, Any] = {"metadata_filters": {"AND": trees}} if trees else {}
    return KemQuery.model_validate(filters | ({"ids": named[0]} if named else {}) | fields)


def condition(key: str, value: bool | float | str) -> str:
    """How a filter says that a key of metadata has this value."""
    quoted = written(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'{_METADATA}{key}="{quoted}"'


def written(value: bool | float | str) -> str:
    """A value as a filter has it: as in JSON, texts without their quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _ids(part: Filter) -> tuple[str, ...]:
    """The ids of which a unit must have one, if that is all that this part says."""
    match part:
        case FieldEquals(name="kem_id", value=kem_id):
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
        case FieldEquals(name=name, value=value) if name.startswith(_METADATA):
            return {name.removeprefix(_METADATA): {"any_of": _readings(value)}}
    raise UnsupportedQuery(f"{part.name} cannot be joined with other conditions here; event types are for watching")


def _readings(text: str) -> list[str | int | float | bool]:
    """As a text, and as the number or truth that it may be."""
    try:
        scalar = json.loads(text)
    except ValueError:
        return [text]
    return [text, scalar] if isinstance(scalar, bool | int | float) else [text]

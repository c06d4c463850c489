"""The filter language of shared memory (spec 000 §7.2.2): subscriptions to changes, conditions of queries."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import JsonValue
from pydantic_core import to_json

from bus_schema.kem_match import facets
from bus_schema.kem_query import LARGEST_NUMBER, Between, KemQuery
from mindbus.errors import Rejected

EVENT_TYPES = ("KEM_PUBLISHED", "KEM_UPDATED", "KEM_EVICTED", "KEM_DELETED")
MAX_DEPTH = 32

_TOKEN = re.compile(
    r'\s*(?:(?P<mark>!=|<=|>=|[()=<>])|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>(?:[^\s()="<>!]|!(?!=))+))', re.DOTALL
)
_METADATA = "metadata."
_BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


class MalformedFilter(Rejected):
    """A filter is conditions joined by AND, OR, NOT, ( ): kem_id=…, metadata.key=value, event_type=… or just its name.

    != is NOT of =; metadata compares with numbers by <, <=, >, >= as well.
    """

    def __init__(self, text: str, position: int, expected: str) -> None:
        super().__init__(position=position, expected=expected, filter=text)
        self.text, self.position, self.expected = text, position, expected

    def __str__(self) -> str:
        pointer = " " * (self.position - 1) + "^"
        return f"At character {self.position}: {self.expected}\n{self.text}\n{pointer}\n{self.__doc__}"


@dataclass(frozen=True, slots=True)
class FilterSubject:
    """A change of a unit that a filter is applied to; a unit that is gone has no metadata."""

    event_type: str
    kem_id: str
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FieldEquals:
    name: str
    value: str

    def matches(self, change: FilterSubject) -> bool:
        if self.name == "kem_id":
            return change.kem_id == self.value
        if self.name == "event_type":
            return change.event_type == self.value
        key = self.name.removeprefix(_METADATA)
        return any(name == key and format_value(value) == self.value for name, value in facets(change.metadata))


@dataclass(frozen=True, slots=True)
class FieldWithin:
    """A value of the metadata is a number within these bounds."""

    name: str
    bounds: Between

    def matches(self, change: FilterSubject) -> bool:
        key = self.name.removeprefix(_METADATA)
        return any(name == key and self.bounds.holds(value) for name, value in facets(change.metadata))


@dataclass(frozen=True, slots=True)
class Neither:
    """This does not match; of `metadata.key!=value` true for a unit without the key."""

    part: "Filter"

    def matches(self, change: FilterSubject) -> bool:
        return not self.part.matches(change)


@dataclass(frozen=True, slots=True)
class Both:
    """Each of these matches; none of them is everything."""

    parts: tuple["Filter", ...]

    def matches(self, change: FilterSubject) -> bool:
        return all(part.matches(change) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of these matches."""

    parts: tuple["Filter", ...]

    def matches(self, change: FilterSubject) -> bool:
        return any(part.matches(change) for part in self.parts)


Filter = FieldEquals | FieldWithin | Neither | Both | Either
EVERYTHING = Both(())


def parse_filter(text: str) -> Filter:
    """NOT binds closer than AND, AND than OR; values with spaces or marks stand in double quotes.

    Raises MalformedFilter.
    """
    parser = _Parser(text)
    if parser.next.kind == "end":
        return EVERYTHING
    parsed = parser.either(0)
    if parser.next.kind != "end":
        raise parser.error("expected AND, OR or the end")
    return parsed


class _Token(NamedTuple):
    position: int
    kind: str
    text: str

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.upper() == word


def _tokens(text: str) -> Iterator[_Token]:
    end = 0
    while match := _TOKEN.match(text, end):
        kind = str(match.lastgroup)
        value = re.sub(r"\\(.)", r"\1", match[kind]) if kind == "quoted" else match[kind]
        yield _Token(match.end() - len(match[0].lstrip()), kind, value)
        end = match.end()
    if remainder := text[end:].strip():
        raise MalformedFilter(text, text.index(remainder, end) + 1, "a quote without its other half")
    yield _Token(len(text), "end", "")


class _Parser:
    """Recursive descent, one method for each precedence."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens = text, _tokens(text)
        self.next = next(self._tokens)

    def either(self, depth: int) -> Filter:
        parts = [self._both(depth)]
        while self._takes_word("OR"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def error(self, expected: str, at: _Token | None = None) -> MalformedFilter:
        return MalformedFilter(self._text, (at or self.next).position + 1, expected)

    def _both(self, depth: int) -> Filter:
        parts = [self._one(depth)]
        while self._takes_word("AND"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _one(self, depth: int) -> Filter:
        name = self.next
        if self._takes_word("NOT"):
            if depth == MAX_DEPTH:
                raise self.error(f"more than {MAX_DEPTH} parentheses within each other", name)
            return Neither(self._one(depth + 1))
        if self._takes_mark("("):
            if depth == MAX_DEPTH:
                raise self.error(f"more than {MAX_DEPTH} parentheses within each other", name)
            inner = self.either(depth + 1)
            if not self._takes_mark(")"):
                raise self.error("expected AND, OR or )")
            return inner
        if name.kind != "word" or name.is_word("AND") or name.is_word("OR"):
            raise self.error("expected a condition")
        self._advance()
        if name.text in EVENT_TYPES:
            return FieldEquals("event_type", name.text)
        is_metadata = name.text.startswith(_METADATA) and name.text != _METADATA
        if not is_metadata and name.text not in ("kem_id", "event_type"):
            raise self.error(f"unknown field {name.text}", name)
        return self._condition(name.text)

    def _condition(self, field_name: str) -> Filter:
        sign = self.next
        if sign.kind == "mark" and sign.text in _BOUNDS:
            self._advance()
            return self._within(field_name, sign)
        if self._takes_mark("!="):
            return Neither(self._equals(field_name))
        if not self._takes_mark("="):
            raise self.error("expected =")
        return self._equals(field_name)

    def _within(self, field_name: str, sign: _Token) -> FieldWithin:
        if not field_name.startswith(_METADATA):
            raise self.error(f"{field_name} has no order: expected = or !=", sign)
        value = self.next
        try:
            bound = float(value.text)
        except ValueError:
            raise self.error("expected a number: dates are compared as text, by = alone") from None
        if not math.isfinite(bound):
            raise self.error("expected a number")
        self._advance()
        return FieldWithin(field_name, Between.model_validate({_BOUNDS[sign.text]: bound}))

    def _equals(self, field_name: str) -> FieldEquals:
        value = self.next
        if value.kind in ("mark", "end"):
            raise self.error("expected a value")
        if field_name == "event_type" and value.text not in EVENT_TYPES:
            raise self.error(f"expected one of {', '.join(EVENT_TYPES)}")
        self._advance()
        return FieldEquals(field_name, value.text)

    def _takes_word(self, word: str) -> bool:
        return self.next.is_word(word) and self._advance()

    def _takes_mark(self, mark: str) -> bool:
        return (self.next.kind, self.next.text) == ("mark", mark) and self._advance()

    def _advance(self) -> bool:
        self.next = next(self._tokens)
        return True


class UnsupportedQuery(Rejected):
    """A query's filter has conditions on metadata, and on kem_id once, joined to the rest by AND."""

    def __init__(self, message: str) -> None:
        super().__init__(message=message, details={"what": message})


def query_from(text: str, **fields: Any) -> KemQuery:
    """A query with the conditions of a filter. Raises MalformedFilter, UnsupportedQuery, ValidationError."""
    parsed = parse_filter(text)
    parts = parsed.parts if isinstance(parsed, Both) else (parsed,)
    named = [ids for ids in map(_ids, parts) if ids]
    if len(named) > 1:
        raise UnsupportedQuery("kem_id can be asked for once: join several by OR")
    trees = [_tree(part) for part in parts if not _ids(part)]
    filters: dict[str, Any] = {"metadata_filters": {"AND": trees}} if trees else {}
    return KemQuery.model_validate(filters | ({"ids": named[0]} if named else {}) | fields)


def condition(key: str, value: bool | float | str) -> str:
    """The condition that a key of metadata has this value."""
    quoted = format_value(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'{_METADATA}{key}="{quoted}"'


def format_value(value: bool | float | str) -> str:
    """A value in the notation of filters: JSON, texts without their quotes."""
    return value if isinstance(value, str) else to_json(value).decode()


def _ids(part: Filter) -> tuple[str, ...]:
    """The ids of which a unit must have one, if that is all that this part says."""
    match part:
        case FieldEquals(name="kem_id", value=kem_id):
            return (kem_id,)
        case Either(parts=parts) if all(map(_ids, parts)):
            return tuple(kem_id for part in parts for kem_id in _ids(part))
    return ()


def _tree(part: Filter) -> dict[str, Any]:
    match part:
        case Both(parts=parts):
            return {"AND": list(map(_tree, parts))}
        case Either(parts=parts):
            return {"OR": list(map(_tree, parts))}
        case Neither(part=inner):
            return {"NOT": _tree(inner)}
        case FieldWithin(name=name, bounds=bounds):
            return {name.removeprefix(_METADATA): bounds.model_dump(exclude_none=True)}
        case FieldEquals(name=name, value=value) if name.startswith(_METADATA):
            return {name.removeprefix(_METADATA): {"any_of": _readings(value)}}
    raise UnsupportedQuery(f"{part.name} cannot be joined with other conditions here; event types are for watching")


def _readings(text: str) -> list[str | int | float | bool]:
    """As a text, and as the number or truth that it may be; what units hold no number of is a text alone."""
    try:
        scalar = json.loads(text)
    except ValueError:
        return [text]
    is_scalar = isinstance(scalar, bool | int | float) and -LARGEST_NUMBER <= scalar <= LARGEST_NUMBER
    return [text, scalar] if is_scalar else [text]

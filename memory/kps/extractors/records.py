"""JSON: its names become headings, its values lines."""

import json
from typing import Any, NoReturn

from memory.kps.document import Composer, Document
from memory.kps.refusals import CorruptDocument

_DEEPEST = 64
# A longer value is a text of its own rather than a field.
_LONG_CHARS = 200


def extract(text: str) -> Document:
    """One value, mostly an object or a list of them."""
    composer = Composer()
    _tell(composer, _parsed(text), 1)
    return composer.document()


def extract_lines(text: str) -> Document:
    """A value a line."""
    composer = Composer()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _tell(composer, _parsed(line, number), 1)
    return composer.document()


def _parsed(text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as broken:
        where = f"line {line}: " if line else ""
        raise CorruptDocument(reason=f"not JSON: {where}{broken}") from broken


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _tell(composer: Composer, value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise CorruptDocument(reason=f"nested deeper than {_DEEPEST} levels")
    if isinstance(value, dict):
        _tell_object(composer, value, depth)
    elif isinstance(value, list):
        if all(_is_short(member) for member in value):
            composer.lines("\n".join(map(_shown, value)))
            return
        for member in value:
            _tell(composer, member, depth + 1)
    else:
        composer.prose(_shown(value))


def _tell_object(composer: Composer, members: dict[str, Any], depth: int) -> None:
    short = {name: value for name, value in members.items() if _is_short(value)}
    composer.lines("\n".join(f"{name}: {_shown(value)}" for name, value in short.items() if value is not None))
    for name, value in members.items():
        if name not in short and value not in ([], {}):
            composer.heading(name, min(depth, 6))
            _tell(composer, value, depth + 1)


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONG_CHARS and "\n" not in value
    return not isinstance(value, dict | list)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)

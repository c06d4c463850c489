"""Strict JSON: no depth bombs, NaN or duplicate keys."""

import json
import re
from typing import Any, NoReturn

MAX_DEPTH = 32


class MalformedJson(ValueError):
    """The text is not JSON that MindBus accepts; the detail says what is wrong."""


def parse_object(text: bytes | str) -> dict[str, Any]:
    """Parse one JSON object of at most 32 levels.

    Raises MalformedJson for anything else: broken syntax, NaN or Infinity, a key given twice, huge integers.
    """
    raw = text.encode() if isinstance(text, str) else text
    # Bytes inside strings only make the quick count too high, never too low.
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise MalformedJson(f"nested deeper than {MAX_DEPTH} levels")
    try:
        value = _decoder.decode(raw.decode())
    except MalformedJson:
        raise
    except (ValueError, RecursionError) as broken:
        raise MalformedJson(str(broken)) from broken
    if not isinstance(value, dict):
        raise MalformedJson(f"expected an object, got {type(value).__name__}")
    return value


def has_nul(raw: bytes) -> bool:
    """Whether JSON has a NUL character in any of its strings; PostgreSQL cannot store one."""
    return _NUL in raw and any(_NUL in text for text in _ESCAPED_BACKSLASH.split(raw))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        raise MalformedJson(f"key given twice: {next(key for key in keys if keys.count(key) > 1)}")
    return members


def _no_constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is not JSON")


# JSON between programs is UTF-8 (RFC 8259 §8.1): nothing to guess, and one decoder does for all.
_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


_NUL = rb"\u0000"
_ESCAPED_BACKSLASH = re.compile(rb"\\\\")
# A string that does not end takes all that is left, so that no text is looked at twice.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _depth(raw: bytes) -> int:
    """Maximum nesting depth, ignoring brackets inside strings."""
    depth = deepest = 0
    for bracket in _STRING.sub(b"", raw).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest

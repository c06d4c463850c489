"""Ranges of bytes, written as HTTP writes them."""

import re

from mindbus.cli.errors import UsageError
from mindbus.sdk.artifacts import ReadOptions

_RANGE = re.compile(r"(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})")


def parse_range(text: str | None) -> ReadOptions:
    """First and last byte, counted from 0; either may be left out: `500-`, or `-500` for the last 500.

    Raises UsageError.
    """
    if text is None:
        return {}
    found = _RANGE.fullmatch(text)
    first, last = (found["first"], found["last"]) if found else ("", "")
    if first and last and int(first) <= int(last):
        return {"start": int(first), "length": int(last) - int(first) + 1}
    if first and not last:
        return {"start": int(first)}
    if last and not first and int(last):
        return {"start": -int(last)}
    raise UsageError(f"{text!r} is no range of bytes; write 0-1023, 1024- or -500")

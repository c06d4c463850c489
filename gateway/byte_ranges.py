"""Ranges of bytes, as HTTP asks for them (RFC 9110 §14)."""

import re
from dataclasses import dataclass

_ONE = re.compile(r"bytes=(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})", re.IGNORECASE)


class UnsatisfiableRange(Exception):
    """There are no such bytes."""


@dataclass(frozen=True)
class ByteRange:
    """From one byte to another, both included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


def parse_range(header: str | None, size_bytes: int) -> ByteRange | None:
    """The one range that is asked for; None: all of it, as for whatever a server may leave aside.

    Raises UnsatisfiableRange.
    """
    found = _ONE.fullmatch(header.strip()) if header else None
    if found is None or not (found["first"] or found["last"]):
        return None
    if not found["first"]:
        length = min(int(found["last"]), size_bytes)
        if not length:
            raise UnsatisfiableRange(UnsatisfiableRange.__doc__)
        return ByteRange(size_bytes - length, size_bytes - 1)
    first = int(found["first"])
    last = min(int(found["last"]), size_bytes - 1) if found["last"] else size_bytes - 1
    if found["last"] and int(found["last"]) < first:
        return None
    if first >= size_bytes:
        raise UnsatisfiableRange(UnsatisfiableRange.__doc__)
    return ByteRange(first, last)

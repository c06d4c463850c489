"""The Range header of HTTP (RFC 9110 §14): one range of bytes."""

import re
from dataclasses import dataclass

from mindbus.errors import Rejected

_RANGE = re.compile(r"bytes=(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})", re.IGNORECASE)


class UnsatisfiableRange(Rejected):
    """There are no such bytes."""


@dataclass(frozen=True)
class RequestedRange:
    """Bytes `first` to `last`, both included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """Number of bytes."""
        return self.last - self.first + 1


def parse_range(header: str | None, size_bytes: int) -> RequestedRange | None:
    """The requested range; None stands for the whole body, as for a header that a server may ignore.

    Raises UnsatisfiableRange.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or not (match["first"] or match["last"]):
        return None
    if not match["first"]:
        length = min(int(match["last"]), size_bytes)
        if not length:
            raise UnsatisfiableRange
        return RequestedRange(size_bytes - length, size_bytes - 1)
    first = int(match["first"])
    last = min(int(match["last"]), size_bytes - 1) if match["last"] else size_bytes - 1
    if match["last"] and int(match["last"]) < first:
        return None
    if first >= size_bytes:
        raise UnsatisfiableRange
    return RequestedRange(first, last)

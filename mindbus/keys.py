"""What a file in the store may be called."""

import re

_KEY = re.compile(r"(?:[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*/)*[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*")


class NotAKey(ValueError):
    """A key is a relative path of plain names; build it from ids, never from what a message says."""


def checked(key: str) -> str:
    """The same key. Raises NotAKey."""
    if not _KEY.fullmatch(key):
        raise NotAKey(f"{NotAKey.__doc__} Got: {key!r}")
    return key

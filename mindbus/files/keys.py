"""Keys in the file store: their syntax, and the names of staged files and of permanent objects."""

import os
import re
from datetime import UTC, datetime

OBJECTS = "objects/sha256"

_KEY = re.compile(r"(?:[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*/)*[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*")


class InvalidKey(ValueError):
    """A key is a relative path of plain names; build it from ids, never from the text of a message."""


def checked_key(key: str) -> str:
    """The key itself. Raises InvalidKey."""
    if not _KEY.fullmatch(key):
        raise InvalidKey(f"{InvalidKey.__doc__} Got: {key!r}")
    return key


def staging_folder(owner: str) -> str:
    """The name of an owner's folder within a day of staging."""
    return owner.replace(".", "_")


def new_staging_key(owner: str, now: datetime) -> str:
    """A fresh, unguessable key for one upload."""
    return f"staging/{now.astimezone(UTC):%Y/%m/%d}/{staging_folder(owner)}/{os.urandom(16).hex()}"


def object_key(sha256: str, generation: int | str) -> str:
    """The permanent key of one generation of a content."""
    return f"{OBJECTS}/{sha256[:2]}/{sha256[2:4]}/{sha256}/{generation}"

"""Keys in the file store, and file names and content types of downloads that are safe in HTTP headers."""

import mimetypes
import os
import re
from datetime import UTC, datetime

OBJECTS = "objects/sha256"

_KEY = re.compile(r"(?:[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*/)*[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SUFFIX = re.compile(r"\.[a-z0-9]{1,12}")
_CONTENT_TYPE = re.compile(r"[A-Za-z0-9.+_-]+/[A-Za-z0-9.+_-]+(?:; ?charset=[A-Za-z0-9-]+)?")
_UNKNOWN = "application/octet-stream"


class InvalidKey(ValueError):
    """A key is a relative path of plain names; build it from ids, never from the text of a message."""


def validate_key(key: str) -> str:
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


def file_name(name: str, content_type: str) -> str:
    """An artifact's id with the usual suffix of its content type."""
    stem = name if _NAME.fullmatch(name) else "artifact"
    suffix = mimetypes.guess_extension(content_type.split(";")[0].strip(), strict=False) or ""
    return stem + (suffix if _SUFFIX.fullmatch(suffix) else "")


def content_type_of(claimed: str) -> str:
    """The producer's content type if it is safe in a header, else application/octet-stream."""
    return claimed if _CONTENT_TYPE.fullmatch(claimed) else _UNKNOWN

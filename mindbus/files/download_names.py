"""File names and content types of downloads that are safe in HTTP headers and on any file system."""

import mimetypes
import re

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SUFFIX = re.compile(r"\.[a-z0-9]{1,12}")
_CONTENT_TYPE = re.compile(r"[A-Za-z0-9.+_-]+/[A-Za-z0-9.+_-]+(?:; ?charset=[A-Za-z0-9-]+)?")
_UNKNOWN = "application/octet-stream"


def file_name(name: str, content_type: str) -> str:
    """An artifact's id with the usual suffix of its content type."""
    stem = name if _NAME.fullmatch(name) else "artifact"
    suffix = mimetypes.guess_extension(content_type.split(";")[0].strip(), strict=False) or ""
    return stem + (suffix if _SUFFIX.fullmatch(suffix) else "")


def content_type_of(claimed: str) -> str:
    """The producer's content type if it is safe in a header, else application/octet-stream."""
    return claimed if _CONTENT_TYPE.fullmatch(claimed) else _UNKNOWN

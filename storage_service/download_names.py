"""What a downloaded artifact is called, without a letter that a header or a file system might misread."""

import mimetypes
import re

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_ENDING = re.compile(r"\.[a-z0-9]{1,12}")
_PLAIN_TYPE = re.compile(r"[A-Za-z0-9.+_-]+/[A-Za-z0-9.+_-]+(?:; ?charset=[A-Za-z0-9-]+)?")
_UNKNOWN = "application/octet-stream"


def file_name(name: str, content_type: str) -> str:
    """An artifact's id with the usual ending of its type."""
    stem = name if _NAME.fullmatch(name) else "artifact"
    ending = mimetypes.guess_extension(content_type.split(";")[0].strip(), strict=False) or ""
    return stem + (ending if _ENDING.fullmatch(ending) else "")


def content_type_of(claimed: str) -> str:
    """A producer's claim, where it can stand in a header as it is."""
    return claimed if _PLAIN_TYPE.fullmatch(claimed) else _UNKNOWN

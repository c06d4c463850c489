"""What a role is given to work on: artifacts as labelled text, data and never instructions."""

import re
from email.message import Message as MimeMessage

from agents.models.prompt import Material
from bus_schema.artifacts import Manifest

# Far beyond what any model here reads at once, far below what would hurt this process.
LARGEST_INPUT_BYTES = 1024 * 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


class UnusableInput(ValueError):
    """A role cannot work with this input, however often it tries."""

    def __init__(self, name: str, manifest: Manifest, detail: str = "") -> None:
        said = " ".join((type(self).__doc__ or "").split())
        super().__init__(f"input {name!r} ({manifest.id}, {manifest.content_type}): {said}{detail and f' ({detail})'}")


class InputEmpty(UnusableInput):
    """There is nothing in it; give it some text."""


class InputNotText(UnusableInput):
    """It is not text; give text in UTF-8, or name its charset in the content type."""


class InputTooLarge(UnusableInput):
    """It is too large to be read; give at most 1 MiB."""


def read_material(name: str, manifest: Manifest, content: bytes) -> Material:
    """An artifact as material, under its id and type. Raises UnusableInput."""
    if len(content) > LARGEST_INPUT_BYTES:
        raise InputTooLarge(name, manifest, f"{len(content)} bytes")
    try:
        text = content.decode(_charset_of(manifest.content_type))
    except (UnicodeDecodeError, LookupError) as undecodable:
        raise InputNotText(name, manifest, str(undecodable)) from undecodable
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _CONTROL.search(text):
        raise InputNotText(name, manifest, "it has control characters")
    if not text.strip("\ufeff \t\n\f"):
        raise InputEmpty(name, manifest)
    return Material(manifest.id, manifest.artifact_type, text)


def provenance(name: str, manifest: Manifest) -> str:
    """One line on where a piece of material comes from."""
    return f"{manifest.id}: {name}, a {manifest.artifact_type} by {manifest.owner}"


def _charset_of(content_type: str) -> str:
    header = MimeMessage()
    header["Content-Type"] = content_type
    charset = str(header.get_content_charset("utf-8"))
    return "utf-8-sig" if charset in ("utf-8", "utf8", "us-ascii") else charset

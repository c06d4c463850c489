"""Plain text: paragraphs between empty lines."""

import re

from memory.kps.document import Block, Document, Kind

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:\r?\n[^\S\n]*\S(?:.*\S)?)*")


def extract(text: str) -> Document:
    """The text as it is, so that a span of it is one of the artifact."""
    return _document(text, "prose")


def extract_lines(text: str) -> Document:
    """The same of a table."""
    return _document(text, "lines")


def _document(text: str, kind: Kind) -> Document:
    return Document(text, tuple(Block(kind, *found.span()) for found in _PARAGRAPH.finditer(text)))

"""Texts with highlighted words or differences."""

import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.components import text
from language.words import stems

Look = Literal["plain", "asked", "added", "struck"]

_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
_TOKEN = re.compile(r"\S+\s*|\s+")
_BEFORE = 60
_MAX_COMPARED = 4000


class HighlightedText(NamedTuple):
    """A part of a text with its look."""

    text: str
    look: Look = "plain"


def highlight(content: str, query_words: Collection[str]) -> list[HighlightedText]:
    """The text with these words marked in any inflected form."""
    query_stems = {stem for word in query_words for stem in stems(word)}
    pieces: list[HighlightedText] = []
    end = 0
    for match in _WORD.finditer(content) if query_stems else ():
        if query_stems & set(stems(match[0])):
            pieces += [HighlightedText(content[end : match.start()]), HighlightedText(match[0], "asked")]
            end = match.end()
    return [piece for piece in (*pieces, HighlightedText(content[end:])) if piece.text]


def excerpt(content: str, query_words: Collection[str], length: int) -> list[HighlightedText]:
    """One line around the first marked word, at most `length` characters."""
    line = " ".join(content.split())
    at = 0
    for piece in highlight(line, query_words):
        if piece.look == "asked":
            break
        at += len(piece.text)
    start = 0 if at >= len(line) or len(line) <= length else max(0, min(at - _BEFORE, len(line) - length))
    # Not in the middle of a word.
    start = line.find(" ", start) + 1 if start else 0
    shown = line[start : start + length]
    return highlight(("…" if start else "") + shown + ("…" if start + length < len(line) else ""), query_words)


def text_diff(before: str, after: str) -> list[HighlightedText]:
    """Deleted and inserted parts; of a long text only the new version."""
    if max(len(before), len(after)) > _MAX_COMPARED:
        return [HighlightedText(after)]
    return list(_difference(_TOKEN.findall(before), _TOKEN.findall(after)))


def show_text(pieces: Collection[HighlightedText]) -> list[TextElement]:
    return [text(piece.text, _CLASSES[piece.look], _TAGS[piece.look]) for piece in pieces]


def _difference(before: list[str], after: list[str]) -> Iterator[HighlightedText]:
    for kind, start, end, other_start, other_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield HighlightedText("".join(before[start:end]))
            continue
        if start < end:
            yield HighlightedText("".join(before[start:end]), "struck")
        if other_start < other_end:
            yield HighlightedText("".join(after[other_start:other_end]), "added")


_CLASSES = {"plain": "", "asked": "mb-asked", "added": "mb-added", "struck": "mb-struck"}
_TAGS = {"plain": "span", "asked": "mark", "added": "ins", "struck": "del"}

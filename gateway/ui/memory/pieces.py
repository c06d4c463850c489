"""Texts in pieces: where a question's words are, what has changed."""

import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from nicegui.elements.mixins.text_element import TextElement

from gateway.ui.parts import text
from language.words import stems

Look = Literal["plain", "asked", "added", "struck"]

_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
_TOKEN = re.compile(r"\S+\s*|\s+")
_BEFORE = 60
_MOST_COMPARED = 4000


class Piece(NamedTuple):
    """A part of a text with how it is shown."""

    text: str
    look: Look = "plain"


def asked(content: str, words: Collection[str]) -> list[Piece]:
    """With the words that were asked for, in whatever form they stand there."""
    wanted = {stem for word in words for stem in stems(word)}
    pieces: list[Piece] = []
    end = 0
    for found in _WORD.finditer(content) if wanted else ():
        if wanted & set(stems(found[0])):
            pieces += [Piece(content[end : found.start()]), Piece(found[0], "asked")]
            end = found.end()
    return [piece for piece in (*pieces, Piece(content[end:])) if piece.text]


def excerpt(content: str, words: Collection[str], length: int) -> list[Piece]:
    """The stretch around the first word that was asked for, in one line."""
    line = " ".join(content.split())
    at = 0
    for piece in asked(line, words):
        if piece.look == "asked":
            break
        at += len(piece.text)
    start = 0 if at >= len(line) or len(line) <= length else max(0, min(at - _BEFORE, len(line) - length))
    # Not in the middle of a word.
    start = line.find(" ", start) + 1 if start else 0
    shown = line[start : start + length]
    return asked(("…" if start else "") + shown + ("…" if start + length < len(line) else ""), words)


def changed(before: str, after: str) -> list[Piece]:
    """What was taken out, what was put in; a long text only as it is now."""
    if max(len(before), len(after)) > _MOST_COMPARED:
        return [Piece(after)]
    return list(_changed(_TOKEN.findall(before), _TOKEN.findall(after)))


def show(pieces: Collection[Piece]) -> list[TextElement]:
    """On the screen; text is text, whatever is in it."""
    return [text(piece.text, _CLASSES[piece.look], _TAGS[piece.look]) for piece in pieces]


def _changed(before: list[str], after: list[str]) -> Iterator[Piece]:
    for kind, start, end, other_start, other_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield Piece("".join(before[start:end]))
            continue
        if start < end:
            yield Piece("".join(before[start:end]), "struck")
        if other_start < other_end:
            yield Piece("".join(after[other_start:other_end]), "added")


_CLASSES = {"plain": "", "asked": "mb-asked", "added": "mb-added", "struck": "mb-struck"}
_TAGS = {"plain": "span", "asked": "mark", "added": "ins", "struck": "del"}

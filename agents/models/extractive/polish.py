"""The last touch: quotation marks, dashes, apostrophes; not one word changes."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agents.models.extractive.phrases import phrases_in
from language.markdown import Block, Kind
from language.words import Language, language_of

_UNTOUCHED = frozenset({Kind.CODE, Kind.TABLE, Kind.RULE})
# Code, addresses, link targets: what a machine reads stays as it is.
_LITERAL = re.compile(r"(`[^`]*`|\]\([^()]{0,2000}\)|https?://\S+|<[^<>]*>)")
_STRAIGHT_PAIR = re.compile(r'"([^"\s](?:[^"]*[^"\s])?)"')
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
_HYPHEN_DASH = re.compile(r"(?<=[^\s|]) (?:-|--) (?=\S)")


def polish(blocks: Sequence[Block]) -> list[Block]:
    language = language_of("\n".join(block.text for block in blocks))
    return [
        block if block.kind in _UNTOUCHED else replace(block, text=_polished(block.text, language)) for block in blocks
    ]


def _polished(text: str, language: Language) -> str:
    parts = _LITERAL.split(text)
    return "".join(part if at % 2 else _typeset(part, language) for at, part in enumerate(parts))


def _typeset(text: str, language: Language) -> str:
    left, right = phrases_in(language).quote_marks
    marked = _STRAIGHT_PAIR.sub(rf"{left}\1{right}", text) if text.count('"') % 2 == 0 else text
    return _HYPHEN_DASH.sub(" — ", _APOSTROPHE.sub("’", marked))

"""What a text leaves its reader to guess."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from agents.models.extractive.source import Source
from language.markdown import Kind


class Guess(StrEnum):
    QUANTITY = "quantity"
    ABBREVIATION = "abbreviation"
    MORE = "more"


@dataclass(frozen=True)
class Doubt:
    guess: Guess
    word: str
    text: str = ""


_VAGUE = re.compile(
    r"\b(several|many|most|some|a few|often|soon|recently|about half|"
    r"несколько|много|многие|большинство|некоторые|часто|скоро|недавно)\b",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(r"\b([A-ZА-ЯЁ]{2,6})\b")
_EXPLAINED = re.compile(r"\(([A-ZА-ЯЁ]{2,6})\)")
_FEWEST_THEMES = 3


def doubts(source: Source) -> Iterator[Doubt]:
    """Quantities without a number, abbreviations never spelt out, themes of a single statement."""
    known = {word for passage in source.passages for word in _EXPLAINED.findall(passage.text)}
    for passage in source.passages:
        if passage.kind in (Kind.PROSE, Kind.ITEM) and not passage.text.isupper():
            for vague in _VAGUE.findall(passage.text)[:1]:
                yield Doubt(Guess.QUANTITY, vague.lower(), passage.text)
            for word in _ABBREVIATION.findall(passage.text):
                if word not in known:
                    known.add(word)
                    yield Doubt(Guess.ABBREVIATION, word, passage.text)
    for theme, described in enumerate(source.themes):
        if described.heading and len(source.themes) >= _FEWEST_THEMES and len(source.of_theme(theme)) == 1:
            yield Doubt(Guess.MORE, described.heading)

"""Morphology of Russian words, by the dictionary of pymorphy3 (OpenCorpora)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymorphy3.analyzer import MorphAnalyzer


@dataclass(frozen=True, slots=True)
class WordForm:
    """One reading of a word: dictionary form, grammemes of OpenCorpora, share of the word's uses."""

    lemma: str
    grammemes: frozenset[str]
    score: float
    is_known: bool

    def has(self, *grammemes: str) -> bool:
        """Whether the reading has all of these grammemes."""
        return self.grammemes.issuperset(grammemes)


@lru_cache(maxsize=4096)
def word_forms(word: str) -> tuple[WordForm, ...]:
    """Readings of a word, the likeliest first. Loads the dictionary at its first use, 30 MB in 0.1 s, and keeps it."""
    try:
        parses = _analyzer().parse(word.lower())
    except ValueError:
        # pymorphy3 asks for the Unicode names of letters; Tangut ones have none.
        return (WordForm(word.lower(), frozenset({"UNKN"}), 1.0, is_known=False),)
    return tuple(WordForm(each.normal_form, each.tag.grammemes, each.score, each.is_known) for each in parses)


@lru_cache(maxsize=1024)
def nominative(word: str, *grammemes: str) -> str:
    """The nominative singular of the likeliest reading with these grammemes, as it is written; else the word."""
    parse = next((each for each in _analyzer().parse(word.lower()) if set(grammemes) <= each.tag.grammemes), None)
    form = parse and parse.inflect({"nomn", "sing"})
    return str(form.word) if form else word.lower()


@cache
def _analyzer() -> MorphAnalyzer:
    from pymorphy3 import MorphAnalyzer

    return MorphAnalyzer(lang="ru")


def fold_yo(word: str) -> str:
    """A word in small letters with «е» for «ё», which people write or not."""
    return word.lower().replace("ё", "е")

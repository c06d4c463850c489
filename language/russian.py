"""Morphology of Russian words, by the dictionary of pymorphy3 (OpenCorpora)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymorphy3.analyzer import MorphAnalyzer, Parse

# What the dictionary does not have: an imperative that belongs to another verb, a participle.
_MISSING: dict[str, dict[str, tuple[str, ...]]] = {
    "заехать": {"imperatives": ("заезжай", "заезжайте")},
    "спланировать": {"participles": ("спланирован", "спланирована", "спланировано", "спланированы")},
}


@dataclass(frozen=True)
class VerbForms:
    """Forms of a verb that say what somebody will do (of an imperfective verb: does), is to do, has done."""

    infinitive: str
    first: str  # «отправлю»
    third: str  # «отправит»
    plural: str  # «отправим»
    imperatives: tuple[str, ...]  # «отправь», «отправьте»
    pasts: tuple[str, ...]  # of all genders and the plural
    participles: tuple[str, ...]  # «отправлен», …; none of verbs without a passive

    @property
    def forms(self) -> tuple[str, ...]:
        """All of them."""
        finite = (self.infinitive, self.first, self.third, self.plural)
        return (*finite, *self.imperatives, *self.pasts, *self.participles)


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
    return tuple(
        WordForm(parse.normal_form, parse.tag.grammemes, parse.score, parse.is_known)
        for parse in _analyzer().parse(word.lower())
    )


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


def verb_forms(infinitives: Iterable[str]) -> tuple[VerbForms, ...]:
    """Forms of these verbs. Loads the dictionary, 30 MB in 0.2 s, and lets go of it. ValueError for what is no verb."""
    from pymorphy3 import MorphAnalyzer

    analyzer = MorphAnalyzer(lang="ru")
    return tuple(_forms_of(infinitive, analyzer.parse(infinitive)) for infinitive in infinitives)


def _forms_of(infinitive: str, parses: Iterable[Parse]) -> VerbForms:
    verb = next((parse for parse in parses if "INFN" in parse.tag), None)
    if verb is None:
        raise ValueError(f"«{infinitive}» is no infinitive")

    def words(*grammemes: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(form.word for form in verb.lexeme if set(grammemes) in form.tag))

    tense = "futr" if "perf" in verb.tag else "pres"
    missing = _MISSING.get(infinitive, {})
    return VerbForms(
        infinitive,
        first=words("VERB", tense, "1per", "sing")[0],
        third=words("VERB", tense, "3per", "sing")[0],
        plural=words("VERB", tense, "1per", "plur", "indc")[0],
        imperatives=missing.get("imperatives") or words("VERB", "impr", "excl"),
        pasts=words("VERB", "past", "indc"),
        participles=missing.get("participles") or words("PRTS", "past", "pssv"),
    )

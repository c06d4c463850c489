"""Verbs of work in Russian, in the forms in which people promise, ask, report."""

import re
from dataclasses import dataclass
from functools import cache

from agents.task_manager.russian_verb_forms import ONGOING, TABLE

_REFLEXIVE = "ся"

# Зашёл, зашла; внёс, внесла: what the other forms are made from.
_PAST_STEMS = {"шёл": "шл", "ёл": "ел", "ёс": "есл", "ёз": "езл", "ог": "огл"}


@dataclass(frozen=True)
class Verb:
    """One row of the table."""

    infinitive: str
    first: str
    third: str
    imperative: str
    past: str
    participle: str = ""

    @property
    def plural(self) -> str:
        """What "we will" do."""
        if self.third.endswith("даст"):
            return self.third.removesuffix("ст") + "дим"
        base, is_reflexive = self.third.removesuffix(_REFLEXIVE), self.third.endswith(_REFLEXIVE)
        return base[:-1] + ("мся" if is_reflexive else "м")

    @property
    def pasts(self) -> tuple[str, ...]:
        """Every form of "has done"."""
        if self.past.endswith(_REFLEXIVE):
            base = self.past.removesuffix(_REFLEXIVE)
            return (self.past, f"{base}ась", f"{base}ись", f"{base}ось")
        base = self.past
        for masculine, stem in _PAST_STEMS.items():
            base = re.sub(f"{masculine}$", stem, base)
        return (self.past, f"{base}а", f"{base}и", f"{base}о")

    @property
    def participles(self) -> tuple[str, ...]:
        """Every short form of "is done"."""
        if not self.participle:
            return ()
        base = self.participle.replace("ён", "ен")
        return (self.participle, f"{base}а", f"{base}о", f"{base}ы")


@cache
def verbs() -> tuple[Verb, ...]:
    """The whole table."""
    return tuple(dict.fromkeys(Verb(*line.split()) for line in TABLE.strip().splitlines()))


@cache
def ongoing() -> tuple[tuple[str, str, str, str], ...]:
    """Verbs whose present tense speaks of the future: infinitive, first, third, plural."""
    rows = (line.split() for line in ONGOING.strip().splitlines())
    return tuple((infinitive, first, third, plural) for infinitive, first, third, plural in rows)


@cache
def infinitives() -> dict[str, str]:
    """The infinitive of every form, «ё» written as «е»."""
    return {plain(form): infinitive for infinitive, *forms in ongoing() for form in forms} | {
        plain(form): verb.infinitive
        for verb in verbs()
        for form in (
            verb.infinitive,
            verb.first,
            verb.third,
            verb.plural,
            verb.imperative,
            f"{verb.imperative}те",
            *verb.pasts,
            *verb.participles,
        )
    }


def plain(word: str) -> str:
    """A word as it is compared."""
    return word.lower().replace("ё", "е")

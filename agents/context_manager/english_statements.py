"""States of things that English sentences tell of, told from what happened and from feelings."""

import re

from agents.syntax.clauses import Sentence, Word
from agents.tone import is_felt
from language.words import bases, is_base, is_past


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_OPENERS = _listed(
    "ok okay so and but well hey hi fyi btw just also oh right yes no actually ps note reminder by way hello"
)
_WH = _listed(
    "who what where when why how which whose did do does is are was were have has can could would will should shall "
    "didn't don't isn't aren't haven't won't wouldn't any anyone anybody same haha lol thanks thank cheers sorry"
)
_COPULA = _listed("is are isn't aren't 's 're am 'm")
_STATIVE_I = _listed(
    "live work park start finish drive keep run have need do teach sit wear own speak use take cover look cook"
)
_YOU = _listed("you your u ur you're")
_OUR_WAYS = _STATIVE_I | _listed("use meet close open pay get order share")
_AM = _listed("the a an allergic vegetarian vegan based in responsible on from out off head left right deaf blind")
_PAST = _listed("was were had did went got said would will should must")
_FINITE = _COPULA | _listed("has have can't can doesn't don't does do cannot cant")
_PERFECT = re.compile(r"has|have|'ve|they've|we've")
_FIRST = _listed("i i'm im we we're")
_CONTRACTED = re.compile(r"(?:it|that|there|he|she|what|who|here)'s|(?:we|they)'re|i'm|im")
_POINTING = _listed("it this that he she they it's that's he's she's there's they're")
_NUMBER = re.compile(r"\d")
_FEWEST_WORDS = 3


def holds(read: Sentence, words: list[Word]) -> bool:
    """Whether a sentence tells how things are: a subject that is named, and a verb in the present."""
    told = list(words)
    while told and told[0].lower in _OPENERS:
        told = told[1:]
    lowers = [word.lower for word in told]
    if len(told) < _FEWEST_WORDS or lowers[0] in _WH | _YOU:
        return False
    has_value = bool(_NUMBER.search(read.text))
    at = _main_verb(told)
    if at is None:
        return has_value and not is_base(lowers[0]) and not any(is_past(lower) for lower in lowers)
    if set(lowers[:at]) & _YOU:
        return False
    return _of_us(lowers, at, has_value=has_value) if lowers[0] in _FIRST else _of_others(read, lowers, at)


def _of_us(lowers: list[str], at: int, *, has_value: bool) -> bool:
    if lowers[0] in ("we", "we're"):
        return lowers[at] in _OUR_WAYS or has_value
    return _is_trait(lowers, at)


def _of_others(read: Sentence, lowers: list[str], at: int) -> bool:
    has_value = bool(_NUMBER.search(read.text))
    if is_felt(read.text) or (at and lowers[at] in ("was", "were") and not has_value):
        return False
    return has_value or lowers[0] not in _POINTING or (at > 0 and _PERFECT.fullmatch(lowers[at]) is not None)


def is_titled(read: Sentence, words: list[Word]) -> bool:
    """Whether a sentence says what a person is: "Marta is our lead", "I'm the first aider"."""
    says_what = re.search(r"(?:\b(?:is|are)|'s|'m) (?:now )?(?:our|the|my|a|an|head|in charge)\b", read.text)
    is_person = any(word.mention for word in words) or words[0].text[:1].isupper() or words[0].lower in ("i'm", "im")
    return bool(says_what) and is_person


def _main_verb(words: list[Word]) -> int | None:
    """Place of the finite verb in the present that a subject leads to; None where it is past or there is none."""
    for at, word in enumerate(words):
        before, following = words[at - 1].lower if at else "", words[at + 1].lower if at + 1 < len(words) else ""
        is_passive = bool(at) and word.lower in ("was", "were") and is_past(following)
        is_told = word.lower in _PAST or (at and is_past(word.lower) and not _leads_to_participle(before))
        if is_told and not is_passive:
            return None
        if is_passive or word.lower in _FINITE or _CONTRACTED.fullmatch(word.lower):
            return at
        if word.lower.endswith("'s"):
            if not _owns(words, at):
                return at
        elif at and _is_present(word.lower, before, following):
            return at
    return None


def _leads_to_participle(word: str) -> bool:
    return word in _COPULA or word in ("been", "be", "get", "gets", "has", "have") or word.endswith("'s")


def _is_present(word: str, before: str, following: str) -> bool:
    if word.endswith("s") and not word.endswith(("ss", "us")) and _is_third(word):
        return bool(following)
    if not is_base(word):
        return False
    is_plural = before.endswith("s") and following in ("in", "at", "on", "up", "to", "the", "out")
    return is_plural or before in ("i", "we", "they", "all", "always", "usually", "only")


def _owns(words: list[Word], at: int) -> bool:
    """Check for a possessive: a verb comes later, as in "Anna's car is in the yard"."""
    return any(
        word.lower in _COPULA | {"has", "needs"}
        or (word.lower.endswith("s") and _is_third(word.lower) and place > at + 1)
        for place, word in enumerate(words[at + 1 :], at + 1)
    )


def _is_third(word: str) -> bool:
    base = word.removesuffix("s")
    others = {base, word.removesuffix("es"), f"{word.removesuffix('ies')}y"}
    return any(is_base(each) or each in bases() for each in others)


def _is_trait(lowers: list[str], at: int) -> bool:
    """Check for what one is, has or does as a rule, not how one feels."""
    if lowers[at] in ("i'm", "im", "am", "'m"):
        return at + 1 < len(lowers) and lowers[at + 1] in _AM
    return lowers[at] in _STATIVE_I

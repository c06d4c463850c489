"""How a text sounds: from −1, desperate or furious, to 1, delighted."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from agents.text import sentences, stem, words
from agents.tone.lexicon import EMOJI, NEGATIONS, STRONGER, WEAKER, phrases, weights

# A "not" reaches no further than its clause.
_CLAUSE = re.compile(r"[,;:—–]")
_REACH_WORDS = 3
_NEGATED = -0.6
_STRONGER, _WEAKER, _SHOUTED = 1.5, 0.5, 1.4
_EXCLAIMED = 1.15
_MOST_EXCLAMATIONS = 3
# How much feeling it takes to sound half as strong as can be.
_SCALE = 8.0
_MOST_EVIDENCE = 8


@dataclass(frozen=True)
class Tone:
    """A tone with the words that it was heard in, as they were written."""

    value: float
    evidence: tuple[str, ...] = ()


def tone_of(text: str) -> Tone:
    heard = [part for sentence in sentences(text) for part in _heard(sentence)]
    total = math.fsum(weight for _, weight in heard)
    evidence = dict.fromkeys(said for said, weight in heard if weight * total >= 0)
    value = total / math.sqrt(total * total + _SCALE)
    return Tone(round(value, 3), tuple(evidence)[:_MOST_EVIDENCE])


def together(tones: Iterable[Tone]) -> Tone:
    """The tone of several texts by one person: later ones count for more, plain ones for less."""
    weighed = [((1 + 0.1 * place) * (1.0 if tone.evidence else 0.25), tone) for place, tone in enumerate(tones)]
    total = math.fsum(weight for weight, _ in weighed)
    if not total:
        return Tone(0.0)
    value = math.fsum(weight * tone.value for weight, tone in weighed) / total
    evidence = dict.fromkeys(said for _, tone in weighed if tone.value * value > 0 for said in tone.evidence)
    return Tone(round(value, 3), tuple(evidence)[:_MOST_EVIDENCE])


def _heard(sentence: str) -> Iterable[tuple[str, float]]:
    """Everything in a sentence that carries feeling, with how much."""
    louder = _EXCLAIMED ** min(sentence.count("!"), _MOST_EXCLAMATIONS)
    rest = sentence
    for pattern, weight in phrases():
        for found in pattern.finditer(sentence):
            yield found[0].strip(), weight * louder
        rest = pattern.sub(" , ", rest)
    yield from ((mark, EMOJI[mark]) for mark in sentence if mark in EMOJI)
    for clause in _CLAUSE.split(rest):
        spoken = words(clause)
        yield from ((spoken[at], weight * louder) for at, weight in _weighed(spoken))


def _weighed(spoken: list[str]) -> Iterable[tuple[int, float]]:
    for at, word in enumerate(spoken):
        weight = weights().get(stem(word), 0.0)
        if not weight or _only_strengthens(spoken, at):
            continue
        before = [each.lower().replace("’", "'") for each in spoken[max(0, at - _REACH_WORDS) : at]]
        yield at, weight * _coloured(before) * (_SHOUTED if _is_shouted(word) else 1.0)


def _only_strengthens(spoken: list[str], at: int) -> bool:
    """«Ужасно рада» is glad, not awful."""
    following = spoken[at + 1] if at + 1 < len(spoken) else ""
    return spoken[at].lower() in STRONGER and bool(weights().get(stem(following)))


def _coloured(before: list[str]) -> float:
    factor = 1.0
    if any(word in NEGATIONS or word.endswith("n't") for word in before):
        factor *= _NEGATED
    if before and before[-1] in STRONGER:
        factor *= _STRONGER
    if any(word in WEAKER for word in before[-2:]):
        factor *= _WEAKER
    return factor


def _is_shouted(word: str) -> bool:
    return len(word) > 2 and word.isupper()

"""How well each turn of a chat answers to a question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.asked import Asked
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.one_thread import on_one_thread
from memory.lsm.search.postings import CONTEXT
from memory.lsm.search.stretches import Scores
from memory.lsm.search.times import Interval
from memory.lsm.search.weights import Weights

# What happened at a time is told for some days after it.
_TOLD_WITHIN = timedelta(days=7)
# A turn that has so much of what the question's words weigh may well be the one; few have more than half.
_LITTLE = 0.25
# Of a large chat, so many turns are compared with all that their vectors have.
_CLOSELY = 400


@dataclass(frozen=True, slots=True)
class Worded:
    """What the words of a question say of every turn that is `allowed`, while its vector is still being made."""

    asked: Asked
    allowed: NDArray[np.bool_]
    signals: Mapping[str, Scores]
    coverage: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """Each signal of every turn, what they come to with their weights; `order` has the best of them, the best first.

    `coverage` is the most that one turn with its context has of what the words asked for weigh, `nearest` the highest
    cosine of the question with a turn in its context, of what distinguishes the turns.
    """

    signals: Mapping[str, Scores]
    scores: Scores
    order: Sequence[int]
    coverage: float
    nearest: float | None


def worded(index: ChatIndex, asked: Asked, allowed: NDArray[np.bool_] | None = None) -> Worded:
    """Of all turns, unless some only are allowed."""
    everyone = np.ones(len(index), dtype=np.bool_) if allowed is None else allowed
    signals, coverage = _of_words(index, asked, everyone)
    signals |= _of_speakers(index, asked)
    if asked.interval is not None:
        signals["time"] = _of_time(index, asked.interval)
    return Worded(asked, everyone, signals, coverage)


def ranked(index: ChatIndex, by_words: Worded, question: bytes | None, weights: Weights, wanted: int) -> Ranked:
    """With the vector of the question, if there is one; so many turns at most."""
    said = _weighed(by_words.signals, weights, np.zeros(len(index), dtype=np.float32))
    with on_one_thread():
        near = None if question is None else index.directions.nearness(question)
        if near is not None and near.is_rough:
            best = _order(_weighed(near.signals, weights, said), by_words, _CLOSELY)
            index.directions.look_closely(near, best)
    if near is None:
        return Ranked(by_words.signals, said, _order(said, by_words, wanted), by_words.coverage, None)
    scores = _weighed(near.signals, weights, said)
    order, nearest = _order(scores, by_words, wanted), near.nearest(by_words.allowed)
    return Ranked({**by_words.signals, **near.signals}, scores, order, by_words.coverage, nearest)


def part_order(index: ChatIndex, part: Mapping[str, str], scores: Scores, wanted: int) -> list[int]:
    """The turns that have most of the words of one clause; of such, the best for the whole question."""
    having = index.postings.scores(part, CONTEXT)
    there = np.flatnonzero(having > 0)
    found = there[np.lexsort((-scores[there], -having[there]))[:wanted]]
    return [int(each) for each in found]


def best_of(scores: Scores, wanted: int) -> list[int]:
    """So many positions, the best first; of equal ones the earlier. All are sorted only where all are wanted."""
    if wanted >= len(scores):
        found = np.argsort(-scores, kind="stable")
    else:
        least = np.partition(scores, len(scores) - wanted)[len(scores) - wanted] if wanted else np.inf
        there = np.flatnonzero(scores >= least)
        found = there[np.argsort(-scores[there], kind="stable")]
    return [int(each) for each in found[:wanted]]


def _weighed(signals: Mapping[str, Scores], weights: Weights, others: Scores) -> Scores:
    """What they come to, with others."""
    return sum((weights.get(name, 0.0) * each for name, each in signals.items()), others)


def _order(scores: Scores, by_words: Worded, wanted: int) -> list[int]:
    allowed = np.where(by_words.allowed, scores, -np.inf)
    return best_of(allowed, min(wanted, int(by_words.allowed.sum())))


def _of_words(index: ChatIndex, asked: Asked, allowed: NDArray[np.bool_]) -> tuple[dict[str, Scores], float]:
    around = index.postings.scores(asked.stems, CONTEXT) * allowed
    alone = index.postings.scores(asked.stems) * allowed
    most = sum(map(index.postings.rarity, asked.stems))
    coverage = float(around.max(initial=0.0)) / most if most else 0.0
    signals = {
        "words_in_context": _of_the_most(around, most),
        "words": _of_the_most(alone, most),
        "stretch": _of_the_most(index.stretches.best(around), most),
        "asks": index.asking.astype(np.float32),
    }
    return signals, coverage


def _of_speakers(index: ChatIndex, asked: Asked) -> dict[str, Scores]:
    """Only where the question tells one speaker from another."""
    if not asked.named or len(asked.named) == len(index.speakers()):
        return {}
    said = np.zeros(len(index), dtype=np.bool_)
    for name in asked.named:
        said |= index.said_by(name)
    return {"speaker": said.astype(np.float32)}


def _of_time(index: ChatIndex, interval: Interval) -> Scores:
    times = index.stretches.times
    begin, end = interval.begin.timestamp(), (interval.end + _TOLD_WITHIN).timestamp()
    return ((times >= begin) & (times < end)).astype(np.float32)


def _of_the_most(values: Scores, possible: float) -> Scores:
    """As a share of the highest; but where not even that has much of what was asked for, none counts for much."""
    most = max(values.max(initial=0.0), _LITTLE * possible)
    return np.asarray(values / most) if most > 0 else values

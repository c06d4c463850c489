"""Which turns of a chat answer a question best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from bus_schema.lsm_search import SearchEpisodes
from memory.lsm.search.asked import Asked, asked
from memory.lsm.search.certainty import Confidence, confidence
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.choosing import OF_EACH_PART, fitting, woven
from memory.lsm.search.ranking import Ranked, Worded, part_order, ranked, worded
from memory.lsm.search.weights import Weights

_EXACT_AT_MOST = 5
# A long turn may find no room where a shorter one behind it does.
_TRIED = 500
_EXACT_WORDS = 2

# What a turn's score is made of, which words of the question it has.
Reasons = tuple[Mapping[str, float], tuple[str, ...]]
_UNEXPLAINED: Reasons = ({}, ())


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn worth its words; its reasons are there where they were asked for."""

    raw_log_id: str
    score: float
    signals: Mapping[str, float]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The turns found, those among them that have every word asked for."""

    hits: Sequence[Hit]
    exact: Sequence[str]
    confidence: Confidence


def first_look(index: ChatIndex, query: SearchEpisodes, at: datetime, ids: set[str] | None) -> Worded | None:
    """By its words alone; nothing of a chat in which nobody has said anything. `ids` are those let through."""
    if not len(index):
        return None
    return worded(index, asked(query.query, index.speakers(), at), _mask(index, query, ids))


def answered(
    index: ChatIndex, query: SearchEpisodes, by_words: Worded | None, vector: bytes | None, weights: Weights
) -> Answered:
    """The turns that are worth the words there are, the best first; without a vector by words alone."""
    if by_words is None:
        return Answered((), (), "nothing")
    question, allowed = by_words.asked, by_words.allowed
    by_score = ranked(index, by_words, vector, weights, _TRIED + query.budget_words)
    exact = _exact(index, question, by_score.order)
    parts = [
        [each for each in part_order(index, part, by_score.scores, OF_EACH_PART) if allowed[each]]
        for part in question.parts
    ]
    # Exact ones are worth a look, whether they fit or not: those of hot episodes go first.
    chosen = list(dict.fromkeys([*fitting(woven(by_score.order, parts), index.words, query.budget_words), *exact]))
    explained = _explained(index, question, chosen, by_score, weights) if query.explain else {}
    return Answered(
        [Hit(index.ids[each], float(by_score.scores[each]), *explained.get(each, _UNEXPLAINED)) for each in chosen],
        [index.ids[position] for position in exact],
        confidence(by_score, bool(exact)),
    )


def _mask(index: ChatIndex, query: SearchEpisodes, ids: set[str] | None) -> NDArray[np.bool_] | None:
    """As of a moment: what was said later was not known then."""
    times = index.stretches.times
    until = min((each.timestamp() for each in (query.at, query.until) if each is not None), default=times[-1])
    if ids is None and query.since is None and until >= times[-1]:
        return None
    allowed = times <= until
    if query.since is not None:
        allowed &= times >= query.since.timestamp()
    if ids is not None:
        is_named = np.zeros(len(index), dtype=np.bool_)
        is_named[[index.places[key] for key in ids if key in index.places]] = True
        allowed &= is_named
    return np.asarray(allowed)


def _exact(index: ChatIndex, question: Asked, order: Sequence[int]) -> list[int]:
    """The best of those turns that have every word asked for; of a single word that says nothing."""
    if len(question.stems) < _EXACT_WORDS:
        return []
    fewest, *others = sorted(map(index.postings.having, question.stems), key=len)
    having = reduce(lambda those, more: those[_are_in(those, more)], others, fewest)
    if not having.size:
        return []
    best = np.array(order, dtype=np.int64)
    return [int(each) for each in best[_are_in(best, having)][:_EXACT_AT_MOST]]


def _explained(
    index: ChatIndex, question: Asked, chosen: Sequence[int], by_score: Ranked, weights: Weights
) -> dict[int, Reasons]:
    """What each signal adds to the score of each of these turns, what words of the question it has."""
    words = _words_in(index, question, chosen)
    return {
        each: ({name: weights.get(name, 0.0) * float(of[each]) for name, of in by_score.signals.items()}, words[each])
        for each in chosen
    }


def _words_in(index: ChatIndex, question: Asked, chosen: Sequence[int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {position: [] for position in chosen}
    positions = np.array(chosen, dtype=np.int64)
    for stem, word in question.stems.items():
        for position in positions[_are_in(positions, index.postings.having(stem))]:
            found[int(position)].append(word)
    return {position: tuple(dict.fromkeys(words)) for position, words in found.items()}


def _are_in(positions: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    places = np.searchsorted(ascending, positions)
    found = places < len(ascending)
    found[found] = ascending[places[found]] == positions[found]
    return np.asarray(found)

"""Search for the turns of one chat index that answer a question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from bus_schema.episodes import NoteKind
from bus_schema.lsm_search import SearchEpisodes
from language.dates.intervals import Interval
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.questions import ParsedQuestion, parse_question
from memory.lsm.search.ranking import (
    PER_CLAUSE,
    Confidence,
    Ranking,
    Weights,
    WordMatches,
    clause_order,
    fit_budget,
    interleave,
    match_words,
    occurrences,
    rank,
    shown_words,
    told_until,
    within,
)
from retrieval.segments import Scores
from retrieval.sequence_vectors import Similarities
from retrieval.similarity import top

_MAX_EXACT = 5
_DAY = timedelta(days=1)
# More turns are ranked than the budget has words: a long one may not fit where a shorter one behind it does.
_EXTRA_CANDIDATES = 500
# A turn that has the only word of a question is no exact match.
_MIN_EXACT_WORDS = 2
# One that has all of so many words answers the question: «landlord» and «name» stand together by chance.
_SURE_WORDS = 3

# What a person wants of an assistant, and prefers, holds for whatever is asked: so many of each kind, in so much of
# the budget, come behind the first turns. Chosen on fourteen chats with an assistant.
_STANDING: tuple[NoteKind, ...] = ("instruction", "preference")
_STANDING_OF_KIND, _STANDING_SHARE, _BEFORE_STANDING = 2, 0.15, 6

# Weighted signals of a turn, and the words of the question in it.
Reasons = tuple[Mapping[str, float], tuple[str, ...]]
_UNEXPLAINED: Reasons = ({}, ())


@dataclass(frozen=True, slots=True)
class TurnHit:
    """A turn with its score; `signals` and `words` only where the search is to be explained."""

    raw_log_id: str
    score: float
    signals: Mapping[str, float]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChatResult:
    """Hits, best first; `exact` are the ids of those that have every word of the question.

    `weights` are the question's stems with their inverse document frequencies, by which excerpts are chosen.
    """

    hits: Sequence[TurnHit]
    exact: Sequence[str]
    confidence: Confidence
    weights: Mapping[str, float] = field(default_factory=dict)


def match_query(index: ChatIndex, query: SearchEpisodes, at: datetime, ids: set[str] | None) -> WordMatches | None:
    """Match the words of a query among the turns that its filters and `ids` allow; None for an empty chat."""
    if not len(index):
        return None
    question, allowed = parse_question(query.query, index.speakers(), at), _mask(index, query, ids)
    if question.is_of_time and question.interval is not None:
        among = np.ones(len(index), dtype=np.bool_) if allowed is None else allowed
        if (within(index, question.interval) & among).any():
            begin, end, _ = told_until(question.interval)
            # Whoever asks may live in another time zone.
            allowed = within(index, Interval(begin - _DAY, end)) & among
        else:
            question = replace(question, is_of_time=False)
    return match_words(index, question, allowed)


def rank_turns(
    index: ChatIndex, query: SearchEpisodes, matches: WordMatches, similarities: Similarities | None, weights: Weights
) -> Ranking:
    """Rank more turns than the budget of words has room for; without similarities by words alone."""
    return rank(index, matches, similarities, weights, _EXTRA_CANDIDATES + query.budget_words)


def choose_turns(
    index: ChatIndex,
    query: SearchEpisodes,
    matches: WordMatches,
    ranking: Ranking,
    weights: Weights,
    *,
    has_standing: bool = True,
) -> ChatResult:
    """Turns that fit the budget of words, best first; without standing ones where the answer is sorted by time."""
    question, allowed = matches.question, matches.allowed
    exact = _exact(index, question, ranking.order)
    clauses = [
        [each for each in clause_order(index, clause, matches, ranking.scores, PER_CLAUSE) if allowed[each]]
        for clause in question.clauses
    ]
    # Exact matches are kept whether they fit or not: those of hot episodes come first later on.
    order = occurrences(index, question.counted, ranking.order) if question.counted else ranking.order
    first, words = interleave(order, clauses), shown_words(index.words)
    if has_standing:
        told = _standing(index, matches, ranking.scores)
        first[_BEFORE_STANDING:_BEFORE_STANDING] = fit_budget(told, words, int(_STANDING_SHARE * query.budget_words))
    fitting = fit_budget(dict.fromkeys(first), words, query.budget_words)
    chosen = list(dict.fromkeys([*fitting, *exact]))
    reasons = _explain(index, question, chosen, ranking, weights) if query.explain else {}
    return ChatResult(
        [TurnHit(index.ids[each], float(ranking.scores[each]), *reasons.get(each, _UNEXPLAINED)) for each in chosen],
        [index.ids[position] for position in exact],
        ranking.confidence(has_exact=question.is_of_time or (bool(exact) and len(question.stems) >= _SURE_WORDS)),
        {stem: index.postings.idf(stem) for stem in question.stems},
    )


def _standing(index: ChatIndex, matches: WordMatches, scores: Scores) -> Iterator[int]:
    """The instructions and preferences, told to an assistant, that fit a question best."""
    for kind in _STANDING if index.by_user is not None else ():
        told = np.flatnonzero(index.noted((kind,)) & matches.allowed)
        yield from map(int, told[top(scores[told], _STANDING_OF_KIND)])


def _mask(index: ChatIndex, query: SearchEpisodes, ids: set[str] | None) -> NDArray[np.bool_] | None:
    """Mask of the turns within the query's times and ids; None where all are."""
    times = index.segments.times
    until = min((each.timestamp() for each in (query.at, query.until) if each is not None), default=times[-1])
    if ids is None and query.since is None and until >= times[-1] and not query.exclude:
        return None
    allowed = times <= until
    if query.since is not None:
        allowed &= times >= query.since.timestamp()
    if ids is not None:
        has_id = np.zeros(len(index), dtype=np.bool_)
        has_id[list(index.ids.positions(ids).values())] = True
        allowed &= has_id
    allowed[list(index.ids.positions(query.exclude).values())] = False
    return np.asarray(allowed)


def _exact(index: ChatIndex, question: ParsedQuestion, order: Sequence[int]) -> list[int]:
    """The best turns that have every word of the question."""
    if len(question.stems) < _MIN_EXACT_WORDS:
        return []
    rarest, *others = sorted(map(index.postings.positions, question.stems), key=len)
    having_all = reduce(lambda kept, more: kept[_is_in(kept, more)], others, rarest)
    if not having_all.size:
        return []
    best = np.array(order, dtype=np.int64)
    return [int(each) for each in best[_is_in(best, having_all)][:_MAX_EXACT]]


def _explain(
    index: ChatIndex, question: ParsedQuestion, chosen: Sequence[int], ranking: Ranking, weights: Weights
) -> dict[int, Reasons]:
    words: dict[int, list[str]] = {position: [] for position in chosen}
    positions = np.array(chosen, dtype=np.int64)
    for stem, word in question.stems.items():
        for position in positions[_is_in(positions, index.postings.positions(stem))]:
            words[int(position)].append(word)
    return {
        each: (
            {name: weights.get(name, 0.0) * float(signal[each]) for name, signal in ranking.signals.items()},
            tuple(dict.fromkeys(words[each])),
        )
        for each in chosen
    }


def _is_in(positions: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    places = np.searchsorted(ascending, positions)
    is_in = places < len(ascending)
    is_in[is_in] = ascending[places[is_in]] == positions[is_in]
    return np.asarray(is_in)

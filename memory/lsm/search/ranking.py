"""Ranking of the turns of a chat by weighted signals, and the confidence in it."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import zip_longest
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from language.dates.intervals import Interval
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.questions import ParsedQuestion
from retrieval.bm25 import CONTEXT, TermShares
from retrieval.segments import Scores
from retrieval.sequence_vectors import Similarities
from retrieval.similarity import EPSILON, single_blas_thread, top

Weights = Mapping[str, float]
Confidence = Literal["found", "weak", "nothing"]

# Chosen between fits to dialogues and fits to chats with an assistant, all of these in sight (decision 0014).
DEFAULT_WEIGHTS: Weights = {
    "words_in_context": 2.6,
    "words": 1.65,
    "speaker": 0.85,
    "stretch": 0.9,
    "asks": -0.5,
    "user": 2.2,
    "meaning_in_context": 0.5,
    "meaning": 0.3,
    "time": 2.0,
    "note": 0.75,
    "linked": 1.0,
}
# Longer turns are shown by an excerpt: replies of assistants, whose 500 words would fill a search's budget.
LONGEST_WHOLE_WORDS = 100
EXCERPT_WORDS = 60
# So many of each clause's own best turns are among the first.
PER_CLAUSE = 3
# A turn with a note of the kind that a question asks for counts so much even without a word of the question.
_NOTED = 0.5
# A turn with so much of what the fullest has of the question's words tells of an occurrence.
_TOLD_SHARE = 2 / 3
# An event is often told some days after it.
_TOLD_WITHIN = timedelta(days=7)
# Word signals are scaled by at least this share of the possible score: few turns have more than half of it.
_MIN_SCALE = 0.25
# With approximate cosines, so many of the best turns are compared exactly.
_REFINED = 400
_MIN_WORDS = 2
# So many stems of a question are compared, the rarest: the others hardly change what is found, and take long.
_MOST_STEMS = 16
# Logistic regression on the questions of six chats to their own chat, with and without an answer, and to the others.
# Each chat judged by the other five: of 100 answerable questions 12 are `nothing`, of those without an answer 75, of
# those to other chats 51. A short question is near to some turn by chance; beside that, shared words tell nothing.
_SIMILARITY, _LENGTH, _INTERCEPT = 22.8, 2.5, -9.2
_FOUND, _NOTHING = 0.75, 0.35
# Without vectors: of questions to their own dialogue and to another one.
_COVERAGE_ALONE, _INTERCEPT_ALONE = 16.3, -3.15
_FOUND_ALONE, _NOTHING_ALONE = 0.5, 0.1
# Standard scores of fewer turns tell nothing.
_MIN_TURNS = 12


@dataclass(frozen=True, slots=True)
class WordMatches:
    """Signals that need no vector, of every turn; `allowed` is the mask of turns that may be returned.

    `shares` are those of the question's rarest stems in the score of each turn with its context.
    """

    question: ParsedQuestion
    allowed: NDArray[np.bool_]
    signals: Mapping[str, Scores]
    shares: Mapping[str, TermShares]
    coverage: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """Signals and weighted scores of every turn, shape (turns,); `order` has the best positions, best first.

    `coverage` is the highest share of the question's IDF mass in one turn with its context; `similarity` the highest
    cosine of the question with a turn, None without vectors; `length` the number of the question's stems.
    """

    signals: Mapping[str, Scores]
    scores: Scores
    order: Sequence[int]
    coverage: float
    similarity: float | None
    length: int

    def confidence(self, *, has_exact: bool) -> Confidence:
        """`found` where a turn has every word of a longer question, else by similarity; without vectors by coverage."""
        if not self.order:
            return "nothing"
        if has_exact:
            return "found"
        if self.similarity is None or len(self.scores) < _MIN_TURNS:
            if not self.coverage:
                return "nothing"
            return _confidence(_COVERAGE_ALONE * self.coverage + _INTERCEPT_ALONE, _FOUND_ALONE, _NOTHING_ALONE)
        return _confidence(
            _SIMILARITY * self.similarity + _LENGTH * math.log(max(1, self.length)) + _INTERCEPT, _FOUND, _NOTHING
        )


def _confidence(logit: float, found: float, nothing: float) -> Confidence:
    probability = 1 / (1 + math.exp(-logit))
    return "found" if probability >= found else "weak" if probability >= nothing else "nothing"


def match_words(index: ChatIndex, question: ParsedQuestion, allowed: NDArray[np.bool_] | None = None) -> WordMatches:
    """Signals of words, speakers and times, computed while the question is being embedded."""
    mask = np.ones(len(index), dtype=np.bool_) if allowed is None else allowed
    rarest = sorted(question.stems, key=index.postings.idf, reverse=True)[:_MOST_STEMS]
    shares = {stem: index.postings.shares(stem, CONTEXT) for stem in rarest}
    signals, coverage = _word_signals(index, shares, mask)
    signals |= _speaker_signal(index, question)
    if index.by_user is not None and not question.of_assistant:
        # What a person has said is asked for more often than what an assistant made of it.
        signals["user"] = index.by_user.astype(np.float32)
    if question.interval is not None:
        told = within(index, told_until(question.interval))
        # Of a time alone, what was said then comes before what was said soon afterwards.
        then = within(index, question.interval) if question.is_of_time else told
        signals["time"] = 0.5 * told.astype(np.float32) + 0.5 * then.astype(np.float32)
    # Told to an assistant, an event is no likelier to be asked for than the rest (measured on ten chats).
    kinds = question.notes if index.by_user is None else question.notes - {"event"}
    if kinds:
        signals["note"] = index.noted(kinds) * (_NOTED + (1 - _NOTED) * _shares(index, question.stems))
    return WordMatches(question, mask, signals, shares, coverage)


def compare(index: ChatIndex, vector: bytes | None) -> Similarities | None:
    """Compare a question's vector with those of the turns; None without one, or if they have none like it."""
    if vector is None:
        return None
    with single_blas_thread():
        return index.vectors.similarities(vector)


def rank(
    index: ChatIndex, matches: WordMatches, similarities: Similarities | None, weights: Weights, limit: int
) -> Ranking:
    """Rank the turns by their words and, if there are any, similarities; `order` has at most `limit` positions."""
    length = matches.question.length
    by_words = _weighted(matches.signals, weights, np.zeros(len(index), dtype=np.float32))
    if similarities is None:
        return Ranking(matches.signals, by_words, _order(by_words, matches, limit), matches.coverage, None, length)
    meaning = _meaning_signals(similarities)
    scores = _weighted(meaning, weights, by_words)
    if similarities.is_approximate:
        with single_blas_thread():
            refined = index.vectors.refine(similarities, _order(scores, matches, _REFINED))
        exact = _meaning_signals(similarities.of(refined))
        for name, values in exact.items():
            meaning[name][refined] = values
        scores[refined] = _weighted(exact, weights, by_words[refined])
    order, similarity = _order(scores, matches, limit), similarities.maximum(matches.allowed)
    return Ranking({**matches.signals, **meaning}, scores, order, matches.coverage, similarity, length)


def with_linked(index: ChatIndex, matches: WordMatches, ranking: Ranking, ids: Set[str], weights: Weights) -> Ranking:
    """The ranking with a signal of 1 for the turns of these ids, whose episodes are linked to those of the best."""
    linked = np.zeros(len(index), dtype=np.float32)
    linked[list(index.ids.positions(ids).values())] = 1
    scores = _weighted({"linked": linked}, weights, ranking.scores)
    order = _order(scores, matches, len(ranking.order))
    return replace(ranking, signals={**ranking.signals, "linked": linked}, scores=scores, order=order)


def clause_order(
    index: ChatIndex, clause: Mapping[str, str], matches: WordMatches, scores: Scores, limit: int
) -> list[int]:
    """Positions of the turns that match a clause best; equal ones by their scores for the whole question."""
    matching = index.postings.total(matches.shares[stem] for stem in clause if stem in matches.shares)
    positions = np.flatnonzero(matching)
    least = matching[positions][top(matching[positions], limit)].min(initial=np.inf)
    positions = positions[matching[positions] >= least]
    best = positions[np.lexsort((-scores[positions], -matching[positions]))[:limit]]
    return [int(each) for each in best]


def occurrences(index: ChatIndex, stems: Iterable[str], order: Sequence[int]) -> list[int]:
    """The order with the turns that tell of the thing of these stems after its first: one of each stretch in turn."""
    # Those that may not be returned, such as the question itself, are no measure of what tells of it.
    share = _shares(index, stems)[list(order)]
    stretches = index.segments.of(np.array(order, dtype=np.int64))
    tells = (share > 0) & (share >= _TOLD_SHARE * share.max(initial=0.0))
    number: Counter[int] = Counter()
    rounds: list[tuple[int, int]] = []
    for position, stretch in zip(np.array(order)[tells].tolist(), stretches[tells].tolist(), strict=True):
        rounds.append((number[stretch], position))
        number[stretch] += 1
    told = [position for _, position in sorted(rounds, key=lambda each: each[0])]
    return list(dict.fromkeys([*order[:PER_CLAUSE], *told, *order]))


def interleave(order: Sequence[int], clauses: Sequence[Sequence[int]]) -> list[int]:
    """The order for the whole question with each clause's best at its head: two of the whole, one of each clause."""
    if not clauses:
        return list(order)
    head = zip_longest(order[0 : 2 * PER_CLAUSE : 2], order[1 : 2 * PER_CLAUSE : 2], *clauses)
    first = (each for row in head for each in row if each is not None)
    return list(dict.fromkeys([*first, *order]))


def shown_words(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """How many words of each turn a search shows, shape (turns,)."""
    return np.where(words > LONGEST_WHOLE_WORDS, np.uint32(EXCERPT_WORDS), words)


def fit_budget(order: Iterable[int], words: NDArray[np.uint32], budget_words: int) -> list[int]:
    """Positions whose words fit the budget, in order; a shorter one may fit where a longer one before it did not."""
    left = budget_words
    chosen: list[int] = []
    for position in order:
        if words[position] <= left:
            chosen.append(position)
            left -= int(words[position])
        if left < _MIN_WORDS:
            break
    return chosen


def _weighted(signals: Mapping[str, Scores], weights: Weights, scores: Scores) -> Scores:
    """The scores plus the weighted signals."""
    total = scores.copy()
    for name, each in signals.items():
        total += weights.get(name, 0.0) * each
    return total


def _order(scores: Scores, matches: WordMatches, limit: int) -> list[int]:
    allowed = np.where(matches.allowed, scores, -np.inf)
    return list(map(int, top(allowed, min(limit, int(matches.allowed.sum())))))


def _word_signals(
    index: ChatIndex, shares: Mapping[str, TermShares], allowed: NDArray[np.bool_]
) -> tuple[dict[str, Scores], float]:
    in_context = index.postings.total(shares.values()) * allowed
    alone = index.postings.scores(shares) * allowed
    possible = sum(map(index.postings.idf, shares))
    coverage = float(in_context.max(initial=0.0)) / possible if possible else 0.0
    signals = {
        "words_in_context": _scaled(in_context, possible),
        "words": _scaled(alone, possible),
        "stretch": _scaled(index.segments.maximum(in_context), possible),
        "asks": index.questions.astype(np.float32),
    }
    return signals, coverage


def _shares(index: ChatIndex, stems: Iterable[str]) -> Scores:
    """For every turn the share, by inverse document frequency, of these stems that it has, shape (turns,)."""
    shares = np.zeros(len(index), dtype=np.float32)
    weights = {stem: index.postings.idf(stem) for stem in stems}
    for stem, weight in weights.items():
        shares[index.postings.positions(stem)] += weight
    return shares / max(sum(weights.values()), EPSILON)


def _meaning_signals(similarities: Similarities) -> dict[str, Scores]:
    alone, in_context = similarities.standard_scores
    return {"meaning": alone, "meaning_in_context": in_context}


def _speaker_signal(index: ChatIndex, question: ParsedQuestion) -> dict[str, Scores]:
    """1 for the turns of the speakers that the question names; nothing where it names all or none."""
    if not question.speakers or len(question.speakers) == len(index.speakers()):
        return {}
    spoken = np.zeros(len(index), dtype=np.bool_)
    for name in question.speakers:
        spoken |= index.spoken_by(name)
    return {"speaker": spoken.astype(np.float32)}


def told_until(interval: Interval) -> Interval:
    """The interval with the days afterwards in which it is still told of; a bound has none."""
    return interval if interval.is_bound else interval._replace(end=interval.end + _TOLD_WITHIN)


def within(index: ChatIndex, interval: Interval) -> NDArray[np.bool_]:
    """Mask of the turns that were said in an interval."""
    times = index.segments.times
    return np.asarray((times >= interval.begin.timestamp()) & (times < interval.end.timestamp()))


def _scaled(values: Scores, possible: float) -> Scores:
    """Values as a share of the highest, or of a quarter of the possible score where none is higher."""
    scale = max(values.max(initial=0.0), _MIN_SCALE * possible)
    return np.asarray(values / scale) if scale > 0 else values

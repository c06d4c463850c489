"""Topic boundary within an uninterrupted dialogue; a missed boundary costs less than a false one."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from language.words import small_talk_stems, stem_key
from memory.lsm.tables import TurnRow
from memory.lsm.topics import EpisodeText
from memory.packing.sentences import meaningful_stems
from retrieval.similarity import EPSILON, as_floats, normalized

# Turns compared on each side of a boundary; the fewest turns of a topic.
_WINDOW, _MIN_TURNS = 8, 6
# Least distance of two topics relative to their spread, to which shared words are a penalty: a topic that drifts stays
# nearer, the more so if words recur.
_MIN_DISTANCE, _SHARED_WORD_PENALTY = 0.13, 9.0
_SMALL_TALK_WEIGHT = 0.3
# Without vectors: the least share of turns with a word of another turn on their side, the overlap that is chance.
_MIN_COHERENCE, _CHANCE_OVERLAP = 0.6, 0.06

Rows = NDArray[np.float32]


def topic_boundary(text: EpisodeText) -> int | None:
    """Index of the first turn of another topic, by vectors or, where some are missing, by words; None without one."""
    spoken = [index for index, turn in enumerate(text.turns) if turn.content]
    dialogue = _Dialogue([text.turns[index] for index in spoken])
    rows = _directions(text, spoken) if text.has_vectors else None
    boundary = dialogue.boundary_by_words() if rows is None else dialogue.boundary_by_vectors(rows)
    return None if boundary is None else spoken[boundary]


class _Dialogue:
    """Turns with text. An assistant answers, so that it opens no topic."""

    def __init__(self, turns: Sequence[TurnRow]) -> None:
        speakers = {key for turn in turns for key in stem_key(turn.speaker or "").split()}
        self._terms = [meaningful_stems(turn.content) - speakers for turn in turns]
        candidates = range(_MIN_TURNS, len(turns) - _MIN_TURNS + 1)
        self._candidates = [index for index in candidates if turns[index].role != "assistant"]

    def boundary_by_vectors(self, rows: Rows) -> int | None:
        """Index where the windows before and after are furthest from each other, if they are far enough."""
        scores = {
            index: _distance(rows, index) - _SHARED_WORD_PENALTY * self._recurrence(index) for index in self._candidates
        }
        best = max(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] >= _MIN_DISTANCE else None

    def boundary_by_words(self) -> int | None:
        """Index across which hardly a word recurs, though each side is coherent."""
        scores = {index: self._overlap(index) for index in self._candidates if self._is_sharp(index)}
        best = min(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] < _CHANCE_OVERLAP else None

    def _recurrence(self, index: int) -> float:
        """Mean overlap of a turn before and one after; rare words weigh more."""
        before, after = self._terms[max(0, index - _WINDOW) : index], self._terms[index : index + _WINDOW]
        overlaps = [self._shared(one, other) for one in before for other in after]
        return math.fsum(overlaps) / len(overlaps)

    def _shared(self, one: frozenset[str], other: frozenset[str]) -> float:
        weights = (
            (_SMALL_TALK_WEIGHT if term in small_talk_stems() else 1.0) / (self._frequencies[term] - 1)
            for term in one & other
        )
        return math.fsum(weights) / math.sqrt(max(1, len(one)) * max(1, len(other)))

    def _overlap(self, index: int) -> float:
        before = frozenset().union(*self._specific_terms[:index])
        after = frozenset().union(*self._specific_terms[index:])
        return len(before & after) / max(1, min(len(before), len(after)))

    def _is_sharp(self, index: int) -> bool:
        terms = self._specific_terms
        before, after = terms[max(0, index - _WINDOW) : index], terms[index : index + _WINDOW]
        if frozenset().union(*before) & frozenset().union(*after):
            return False
        return min(_coherence(before), _coherence(after)) >= _MIN_COHERENCE

    @cached_property
    def _frequencies(self) -> Counter[str]:
        """Number of turns that have each term."""
        return Counter(term for terms in self._terms for term in terms)

    @cached_property
    def _specific_terms(self) -> list[frozenset[str]]:
        return [terms - small_talk_stems() for terms in self._terms]


def _directions(text: EpisodeText, spoken: Sequence[int]) -> Rows | None:
    """Unit vectors of the turns, shape (turns, dims); None where they are of several models."""
    rows = [as_floats(text.vectors[text.turns[index].id]) for index in spoken]
    return normalized(np.stack(rows)) if len({len(row) for row in rows}) == 1 else None


def _distance(rows: Rows, index: int) -> float:
    """Squared distance of the two windows' means less its expectation by chance, in units of their spread."""
    before, after = rows[max(0, index - _WINDOW) : index], rows[index : index + _WINDOW]
    distance = float(((before.mean(axis=0) - after.mean(axis=0)) ** 2).sum())
    spread_before, spread_after = _spread(before), _spread(after)
    spread = (spread_before + spread_after) / 2
    return (distance - spread_before / len(before) - spread_after / len(after)) / max(spread, EPSILON)


def _spread(rows: Rows) -> float:
    return float(((rows - rows.mean(axis=0)) ** 2).sum()) / (len(rows) - 1)


def _coherence(terms: Sequence[frozenset[str]]) -> float:
    """Share of turns that have a word of another one."""
    frequencies = Counter(term for each in terms for term in each)
    return sum(any(frequencies[term] > 1 for term in each) for each in terms) / len(terms)

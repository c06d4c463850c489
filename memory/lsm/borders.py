"""Where within an unbroken talk another matter begins: rather overlooked than seen where there is none."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from language.words import small_talk_stems, stem_key
from memory.lsm.tables import TurnRow
from memory.lsm.texts import Text
from memory.packing.reading import meant

# Turns beside a border that are compared, turns that a stretch has at least.
_BESIDE, _SHORTEST = 8, 6
# How far the middles of two stretches are apart, in terms of how far the turns of each are from its own: what one
# matter wanders to is nearer than this, even more so if words come back.
_APART, _OF_WORDS = 0.13, 9.0
_OF_CHATTER = 0.3
# Without vectors: words that most turns of a stretch share with its others, words of both that are so by chance.
_COHERENT, _BY_CHANCE = 0.6, 0.06
_NO_LENGTH = 1e-6

Rows = NDArray[np.float32]


def border_of(text: Text) -> int | None:
    """The first turn of the other matter, found by what the turns mean; by their words where vectors are lacking."""
    said = [place for place, turn in enumerate(text.turns) if turn.content]
    talk = _Talk([text.turns[place] for place in said])
    rows = _directions(text, said) if text.has_vectors else None
    found = talk.border_by_words() if rows is None else talk.border_by_meaning(rows)
    return None if found is None else said[found]


class _Talk:
    """Turns that say something. An assistant answers: it opens no matter."""

    def __init__(self, turns: Sequence[TurnRow]) -> None:
        speakers = {key for turn in turns for key in stem_key(turn.speaker or "").split()}
        self._terms = [meant(turn.content) - speakers for turn in turns]
        places = range(_SHORTEST, len(turns) - _SHORTEST + 1)
        self._places = [place for place in places if turns[place].role != "assistant"]

    def border_by_meaning(self, rows: Rows) -> int | None:
        """Where the eight turns before are furthest from the eight after, if that is far."""
        scores = {place: _distance(rows, place) - _OF_WORDS * self._come_back(place) for place in self._places}
        best = max(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] >= _APART else None

    def border_by_words(self) -> int | None:
        """Where no word comes back, though each side keeps to words of its own."""
        scores = {place: self._in_common(place) for place in self._places if self._is_sharp(place)}
        best = min(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] < _BY_CHANCE else None

    def _come_back(self, place: int) -> float:
        """How many words a turn before has in common with one after, those that are said seldom more than others."""
        before, after = self._terms[max(0, place - _BESIDE) : place], self._terms[place : place + _BESIDE]
        pairs = [self._shared(one, other) for one in before for other in after]
        return math.fsum(pairs) / len(pairs)

    def _shared(self, one: frozenset[str], other: frozenset[str]) -> float:
        weights = (
            (_OF_CHATTER if term in small_talk_stems() else 1.0) / (self._turns[term] - 1) for term in one & other
        )
        return math.fsum(weights) / math.sqrt(max(1, len(one)) * max(1, len(other)))

    def _in_common(self, place: int) -> float:
        before, after = frozenset().union(*self._telling[:place]), frozenset().union(*self._telling[place:])
        return len(before & after) / max(1, min(len(before), len(after)))

    def _is_sharp(self, place: int) -> bool:
        before, after = self._telling[max(0, place - _BESIDE) : place], self._telling[place : place + _BESIDE]
        if frozenset().union(*before) & frozenset().union(*after):
            return False
        return min(_coherence(before), _coherence(after)) >= _COHERENT

    @cached_property
    def _turns(self) -> Counter[str]:
        """In how many turns a word is said."""
        return Counter(term for terms in self._terms for term in terms)

    @cached_property
    def _telling(self) -> list[frozenset[str]]:
        return [terms - small_talk_stems() for terms in self._terms]


def _directions(text: Text, said: Sequence[int]) -> Rows | None:
    """The vectors of the turns, none where they are of several models."""
    rows = [np.frombuffer(text.vectors[text.turns[place].id], "<f4") for place in said]
    if len({len(row) for row in rows}) != 1:
        return None
    stacked: Rows = np.stack(rows)
    directions: Rows = stacked / np.maximum(np.linalg.norm(stacked, axis=1, keepdims=True), _NO_LENGTH)
    return directions


def _distance(rows: Rows, place: int) -> float:
    """Squared, between the middles, less what it would be by chance; what all turns share makes no difference."""
    before, after = rows[max(0, place - _BESIDE) : place], rows[place : place + _BESIDE]
    apart = float(((before.mean(axis=0) - after.mean(axis=0)) ** 2).sum())
    spread_before, spread_after = _spread(before), _spread(after)
    spread = (spread_before + spread_after) / 2
    return (apart - spread_before / len(before) - spread_after / len(after)) / max(spread, _NO_LENGTH)


def _spread(rows: Rows) -> float:
    return float(((rows - rows.mean(axis=0)) ** 2).sum()) / (len(rows) - 1)


def _coherence(terms: Sequence[frozenset[str]]) -> float:
    """The share of turns that have a word of another one."""
    turns = Counter(term for each in terms for term in each)
    return sum(any(turns[term] > 1 for term in each) for each in terms) / len(terms)

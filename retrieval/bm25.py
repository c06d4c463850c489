"""Okapi BM25 of documents and of turns in a sequence.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrieval.segments import Scores, Segments, aligned
from retrieval.snapshots import Arrays, Snapshot

# The usual values: K1 is how soon repetitions of a term stop counting, B how much a long text is penalised.
K1 = 1.2
B = 0.75

Number = TypeVar("Number", float, NDArray[np.float32])


class LexicalScore(NamedTuple):
    """Share of the highest possible BM25 score, from 0 to 1, and the words of the query that the text has."""

    score: float
    words: tuple[str, ...]


def idf(having: int, total: int) -> float:
    """Inverse document frequency of a term that `having` of `total` texts have; never negative."""
    return math.log(1 + max(total - having + 0.5, 0) / (having + 0.5))


def length_penalty(length: Number, mean: float) -> Number:
    """Denominator term K1 (1 - B + B length / mean) of a text, or of each text, with so many terms."""
    return K1 * (1 - B + B * length / mean)


def term_share(frequency: Number, penalty: Number) -> Number:
    """Saturated term frequency, from 0 to 1: to be multiplied by the term's idf."""
    return frequency / (frequency + penalty)


def lexical_scores(
    terms: Mapping[str, str], texts: Mapping[str, str], total: int, counts: Mapping[str, int]
) -> dict[str, LexicalScore]:
    """BM25 of each text as a share of the most that the query could get, so that common words alone score low.

    `terms` are the query's stems with their words, `texts` the candidates as stems joined by spaces; `counts` says
    how many of `total` texts have a stem.
    """
    frequencies = {key: Counter(text.split()) for key, text in texts.items()}
    lengths = {key: counts.total() for key, counts in frequencies.items()}
    mean = sum(lengths.values()) / max(len(lengths), 1)
    weights = {stem: idf(counts.get(stem, 0), total) for stem in terms}
    highest = sum(weights.values())
    scores: dict[str, LexicalScore] = {}
    for key, frequency in frequencies.items():
        penalty = length_penalty(float(lengths[key]), mean)
        matched = [stem for stem in terms if stem in frequency]
        score = sum(weights[stem] * term_share(float(frequency[stem]), penalty) for stem in matched) / highest
        scores[key] = LexicalScore(score, tuple(dict.fromkeys(terms[stem] for stem in matched)))
    return scores


# Neighbours whose words count as an item's own, where they are context of it: the two before it and the one after it.
CONTEXT = (-2, -1, 0, 1)
_ALONE = (0,)
# An entry is a position with a term frequency in its lowest four bits; higher frequencies are capped.
_FREQUENCY_BITS = 4
_MAX_FREQUENCY = (1 << _FREQUENCY_BITS) - 1
# Estimated memory of a term with its list, without the entries.
_TERM_BYTES = 200

# Of a term that a larger part of the items have, the shares of all are computed: that is faster than to choose some.
_CHOSEN_PART = 1 / 16

# Positions of items, ascending, or all of them, and the share of one term in the score of each.
TermShares = tuple[NDArray[np.int64] | slice, Scores]


class SequencePostings:
    """BM25 over items, each alone or with its context; only the terms of each item itself are stored."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        # Entries of a snapshot by term; those of items added since are in `_entries`.
        self._mapped: NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)
        self._ranges: dict[str, tuple[int, int]] = {}
        self._entries: dict[str, array[int]] = {}
        self._lengths: array[int] = array("I")
        self._count = 0
        # Made when they are asked for; penalties anew once an item has been added.
        self._length_penalties: dict[tuple[int, ...], Scores] = {}
        self._neighbours: dict[int, NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def size_bytes(self) -> int:
        terms = len(self._entries) + len(self._ranges)
        return 4 * (len(self._lengths) + self._count) + _TERM_BYTES * terms

    def snapshot(self) -> Snapshot:
        """All entries in the order of their terms, which are joined by line ends."""
        terms = sorted(self._ranges.keys() | self._entries.keys())
        lists = [self._entries_of(term) for term in terms]
        arrays: Arrays = {
            "terms": np.frombuffer("\n".join(terms).encode(), dtype=np.uint8),
            "ends": np.cumsum([len(each) for each in lists], dtype=np.int64),
            "entries": np.concatenate(lists) if lists else self._mapped,
            "lengths": np.frombuffer(self._lengths, dtype=np.uint32),
        }
        return Snapshot(arrays, {"terms": len(terms), "bytes": len(arrays["terms"])})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, segments: Segments, items: int) -> Self:
        """The postings of the first `items`."""
        found = cls(segments)
        terms = snapshot.arrays["terms"][: snapshot.facts["bytes"]].tobytes().decode().split("\n")
        ends = snapshot.arrays["ends"][: snapshot.facts["terms"]].tolist()
        found._ranges = dict(zip(terms, zip([0, *ends], ends, strict=False), strict=False))
        found._mapped = snapshot.arrays["entries"]
        found._lengths = array("I", snapshot.arrays["lengths"][:items].tobytes())
        return found

    def add(self, terms: Sequence[str]) -> None:
        position = len(self._lengths) << _FREQUENCY_BITS
        counts = Counter(terms)
        for term, count in counts.items():
            self._entries.setdefault(term, array("I")).append(position | min(count, _MAX_FREQUENCY))
        self._count += len(counts)
        self._lengths.append(len(terms))
        self._length_penalties.clear()

    def scores(self, terms: Iterable[str], offsets: Sequence[int] = _ALONE) -> Scores:
        """BM25 of every item with its neighbours at `offsets`, shape (items,), 0 where it has none of the terms."""
        return self.total(self.shares(term, offsets) for term in terms)

    def shares(self, term: str, offsets: Sequence[int] = _ALONE) -> TermShares:
        """Share of a term in BM25 of the items that have it, themselves or at one of the `offsets`."""
        total, penalties = len(self._lengths), self._penalties(tuple(offsets))
        positions: NDArray[np.int64] | slice
        if offsets == _ALONE:
            positions, counts = self._frequencies(term)
            having = len(counts)
        else:
            in_context = self._in_context(term, offsets)
            is_having = in_context != 0
            having = int(np.count_nonzero(is_having))
            positions = slice(None) if having > _CHOSEN_PART * total else np.flatnonzero(is_having)
            counts = in_context[positions]
        return positions, idf(having, total) * term_share(counts.astype(np.float32), penalties[positions])

    def total(self, shares: Iterable[TermShares]) -> Scores:
        """BM25 of every item from the shares of its terms, shape (items,)."""
        scores = np.zeros(len(self._lengths), dtype=np.float32)
        for positions, values in shares:
            scores[positions] += values
        return scores

    def positions(self, term: str) -> NDArray[np.int64]:
        """Positions of the items that have the term, ascending."""
        return self._frequencies(term)[0]

    def idf(self, term: str) -> float:
        """Inverse document frequency of a term; the maximum for one that no item has."""
        begin, end = self._ranges.get(term, (0, 0))
        return idf(end - begin + len(self._entries.get(term, ())), len(self._lengths))

    def _penalties(self, offsets: tuple[int, ...]) -> Scores:
        """BM25 length penalty of every item with its neighbours."""
        if offsets not in self._length_penalties:
            own = np.frombuffer(self._lengths, dtype=np.uint32).astype(np.float32)
            lengths = sum((self._segments.shifted(own, offset) for offset in offsets), np.zeros_like(own))
            mean = float(lengths.mean()) if len(own) else 1.0
            self._length_penalties[offsets] = length_penalty(lengths, max(mean, 1.0))
        return self._length_penalties[offsets]

    def _has_neighbour(self, offset: int) -> NDArray[np.bool_]:
        """Whether each item has a neighbour at `offset`; what was known is completed."""
        known = self._neighbours.get(offset, np.zeros(0, dtype=np.bool_))
        if len(known) < len(self._lengths):
            # The latest ones may have got neighbours since.
            since = max(0, len(known) - abs(offset))
            added = self._segments.has_neighbour(np.arange(since, len(self._lengths)), offset)
            self._neighbours[offset] = known = np.concatenate([known[:since], added])
        return known

    def _in_context(self, term: str, offsets: Sequence[int]) -> NDArray[np.uint8]:
        """Term frequency of every item with its neighbours, shape (items,): many small numbers are fast as bytes."""
        own = np.zeros(len(self._lengths), dtype=np.uint8)
        positions, frequencies = self._frequencies(term)
        own[positions] = frequencies
        counts = np.zeros_like(own)
        for offset in offsets:
            items, neighbours = aligned(offset, len(own))
            counts[items] += own[neighbours] * self._has_neighbour(offset)[items]
        return counts

    def _frequencies(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Positions of the items that have the term themselves, ascending, and how often each has it."""
        packed = self._entries_of(term)
        return (packed >> _FREQUENCY_BITS).astype(np.int64), (packed & _MAX_FREQUENCY).astype(np.uint8)

    def _entries_of(self, term: str) -> NDArray[np.uint32]:
        begin, end = self._ranges.get(term, (0, 0))
        added = np.frombuffer(self._entries.get(term, array("I")), dtype=np.uint32)
        if begin == end:
            return added
        mapped = np.asarray(self._mapped[begin:end])
        return np.concatenate([mapped, added]) if added.size else mapped

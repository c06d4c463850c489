"""Postings of a sequence of texts, scored by BM25 with or without the neighbours of each text."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.bm25 import idf, length_penalty, term_share
from retrieval.segments import Scores, Segments

# Neighbours whose words count as an item's own: the two before it and the one after it.
CONTEXT = (-2, -1, 0, 1)
_ALONE = (0,)
# An entry is a position with a term frequency in its lowest four bits; higher frequencies are capped.
_FREQUENCY_BITS = 4
_MAX_FREQUENCY = (1 << _FREQUENCY_BITS) - 1
# Estimated memory of a term with its list, without the entries.
_TERM_BYTES = 200


class SequencePostings:
    """BM25 over items, each alone or with its context; only the terms of each item itself are stored."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._entries: dict[str, array[int]] = {}
        self._lengths: array[int] = array("I")
        self._count = 0
        self._length_penalties: dict[tuple[int, ...], Scores] = {}

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def size_bytes(self) -> int:
        """Estimated memory."""
        return 4 * (len(self._lengths) + self._count) + _TERM_BYTES * len(self._entries)

    def add(self, terms: Sequence[str]) -> None:
        """Append an item with its terms."""
        position = len(self._lengths) << _FREQUENCY_BITS
        counts = Counter(terms)
        for term, count in counts.items():
            self._entries.setdefault(term, array("I")).append(position | min(count, _MAX_FREQUENCY))
        self._count += len(counts)
        self._lengths.append(len(terms))
        self._length_penalties.clear()

    def scores(self, terms: Iterable[str], offsets: Sequence[int] = _ALONE) -> Scores:
        """BM25 of every item with its neighbours at `offsets`, shape (items,), 0 where it has none of the terms."""
        total = len(self._lengths)
        scores = np.zeros(total, dtype=np.float32)
        penalties = self._penalties(tuple(offsets))
        for term in terms:
            positions, counts = self._postings(term) if offsets == _ALONE else self._in_context(term, offsets)
            if positions.size:
                scores[positions] += idf(positions.size, total) * term_share(counts, penalties[positions])
        return scores

    def positions(self, term: str) -> NDArray[np.int64]:
        """Positions of the items that have the term, ascending."""
        return self._postings(term)[0]

    def idf(self, term: str) -> float:
        """Inverse document frequency of a term; the maximum for one that no item has."""
        return idf(len(self._entries.get(term, ())), len(self._lengths))

    def _penalties(self, offsets: tuple[int, ...]) -> Scores:
        """BM25 length penalty of every item with its neighbours."""
        if offsets not in self._length_penalties:
            own = np.frombuffer(self._lengths, dtype=np.uint32).astype(np.float32)
            lengths = sum((self._segments.shifted(own, offset) for offset in offsets), np.zeros_like(own))
            mean = float(lengths.mean()) if len(own) else 1.0
            self._length_penalties[offsets] = length_penalty(lengths, max(mean, 1.0))
        return self._length_penalties[offsets]

    def _in_context(self, term: str, offsets: Sequence[int]) -> tuple[NDArray[np.int64], Scores]:
        """Positions and term frequencies of the items that have the term themselves or in their context."""
        positions, counts = self._postings(term)
        total = len(self._lengths)
        sums = np.zeros(total, dtype=np.float32)
        for offset in offsets:
            if not offset:
                sums[positions] += counts
                continue
            at = positions - offset
            exists = (at >= 0) & (at < total)
            at, source, of_source = at[exists], positions[exists], counts[exists]
            same = self._segments.of(at) == self._segments.of(source)
            # Positions of one term are distinct, so fancy indexing loses no addition.
            sums[at[same]] += of_source[same]
        having = np.flatnonzero(sums > 0)
        return having, sums[having]

    def _postings(self, term: str) -> tuple[NDArray[np.int64], Scores]:
        packed = np.frombuffer(self._entries.get(term, array("I")), dtype=np.uint32).astype(np.int64)
        return packed >> _FREQUENCY_BITS, (packed & _MAX_FREQUENCY).astype(np.float32)

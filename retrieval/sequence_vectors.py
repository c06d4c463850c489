"""Vector matrix of a sequence: cosines of a query with every item, alone and in its context."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrieval.segments import ContextWindow, Scores, Segments
from retrieval.similarity import Moments, as_floats, moments, normalized
from retrieval.snapshots import Snapshot, padded, private_bytes

Rows = NDArray[np.float32]

# The mean vector is recomputed when there are so many times as many vectors.
_GROWTH = 1.25
# From so many vectors on, PCA coordinates are compared first; they are fitted to a sample.
_PREFILTER_FROM = 5000
_SAMPLE = 2000
# A quarter of the usual dimension: of the 50 turns nearest to a question, 99.9 % are among the 256 nearest by these
# coordinates (997 questions to 2,760 turns of real dialogues).
_PREFILTER_DIMS = 96
_BATCH = 4096
# Longer than what half precision leaves of a unit vector less itself.
_ROUNDED = 1e-3


@dataclass(frozen=True, slots=True)
class Similarities:
    """Cosines of a query with every item alone and in its context, float32, shape (items,), 0 without a vector.

    `known` marks the items that have a vector; `moments` are those of the exact cosines, alone and in context.
    """

    query: NDArray[np.float32]
    alone: Scores
    in_context: Scores
    known: NDArray[np.bool_]
    moments: tuple[Moments, Moments]
    is_approximate: bool

    @property
    def standard_scores(self) -> tuple[Scores, Scores]:
        """Standard scores of the cosines, alone and in context; 0, the average, for an item without a vector."""
        alone, in_context = self.moments
        return self._standardised(self.alone, *alone), self._standardised(self.in_context, *in_context)

    def of(self, positions: NDArray[np.int64]) -> "Similarities":
        """Those of some items."""
        alone, in_context, known = self.alone[positions], self.in_context[positions], self.known[positions]
        return replace(self, alone=alone, in_context=in_context, known=known)

    def maximum(self, allowed: NDArray[np.bool_]) -> float | None:
        """Highest cosine among the allowed items that have a vector."""
        cosines = self.alone[allowed & self.known]
        return float(cosines.max()) if cosines.size else None

    def _standardised(self, cosines: Scores, mean: float, deviation: float) -> Scores:
        return np.asarray((cosines - np.float32(mean)) * (self.known / np.float32(deviation)))


class SequenceVectors:
    """Vectors of one model in half precision, centred on their mean and normalised when compared.

    Vectors of sentence models lie near each other, so only what differs from the mean tells items apart.
    """

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._stale_from: int | None = None
        self._reset(dims=0)

    @property
    def count(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        prefilter = 0 if self._prefilter is None else self._prefilter.size_bytes
        own = sum(map(private_bytes, (self._vectors, self._known, self._lengths)))
        return own + self._context.size_bytes + prefilter

    def snapshot(self) -> Snapshot:
        """Vectors of all items, with everything that is computed from them."""
        total = len(self._segments)
        self._resize(total)
        self._refresh(total)
        arrays = {"vectors": self._vectors[:total], "known": self._known[:total], "lengths": self._lengths[:total]}
        own = Snapshot({**arrays, "mean": self._mean}, {})
        parts = {"own": own, "context": self._context.snapshot(total)}
        if self._prefilter is not None:
            parts["prefilter"] = self._prefilter.snapshot(total)
        return Snapshot.joined(parts, {"count": self._count, "count_at_mean": self._count_at_mean})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, segments: Segments) -> Self:
        """The vectors of the items in these segments."""
        found, own = cls(segments), snapshot.part("own").arrays
        dims = own["vectors"].shape[1]
        found._vectors, found._known, found._mean = own["vectors"], own["known"], own["mean"][:dims]
        found._lengths = own["lengths"]
        # Where nothing has been written yet, the file has zeros.
        found._lengths[len(segments) :] = 1
        found._context = ContextWindow.of_snapshot(snapshot.part("context"), segments)
        if "prefilter" in snapshot.facts:
            found._prefilter = PcaPrefilter.of_snapshot(snapshot.part("prefilter"))
        found._count, found._count_at_mean = snapshot.facts["count"], snapshot.facts["count_at_mean"]
        return found

    def without(self) -> NDArray[np.int64]:
        """Positions of the items that have no vector."""
        total = len(self._segments)
        self._resize(total)
        return np.flatnonzero(~self._known[:total])

    def put(self, position: int, vector: bytes) -> None:
        """Set the vector of an item, little-endian float32; another dimension replaces all vectors so far."""
        own = as_floats(vector)
        if len(own) != self._vectors.shape[1]:
            self._reset(len(own))
        self._resize(position + 1)
        if not self._known[position]:
            self._count += 1
        self._vectors[position] = normalized(own)
        self._known[position] = True
        first = self._context.first_affected(position)
        self._stale_from = first if self._stale_from is None else min(first, self._stale_from)

    def similarities(self, query: bytes) -> Similarities | None:
        """Cosines of the query with every item; None without vectors of its dimension.

        With many vectors they are approximate, by PCA coordinates: see `refine`.
        """
        vector = as_floats(query)
        if not self._count or len(vector) != self._vectors.shape[1]:
            return None
        total = len(self._segments)
        self._resize(total)
        self._refresh(total)
        centred, is_known = normalized(normalized(vector) - self._mean), self._known[:total]
        prefilter = self._prefilter
        alone = self._cosines(centred, slice(total)) if prefilter is None else prefilter.cosines(centred, total)
        in_context = self._context.all(alone)
        exact = (
            (moments(alone[is_known]), moments(in_context[is_known]))
            if prefilter is None
            else prefilter.moments(centred)
        )
        return Similarities(centred, alone, in_context, is_known, exact, is_approximate=prefilter is not None)

    def refine(self, similarities: Similarities, positions: Sequence[int]) -> NDArray[np.int64]:
        """Replace the approximate cosines of these items by exact ones, in place; all items that this has changed."""
        places = np.array(positions, dtype=np.int64)
        total = len(similarities.alone)
        members = self._context.members(places, total)
        similarities.alone[members] = self._cosines(similarities.query, members)
        similarities.in_context[places] = self._context.of(places, similarities.alone.__getitem__, total)
        return members

    def _reset(self, dims: int) -> None:
        self._vectors: NDArray[np.float16] = np.zeros((0, dims), dtype=np.float16)
        self._known: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._lengths: Scores = np.ones(0, dtype=np.float32)
        self._context = ContextWindow(self._segments)
        self._mean: Rows = np.zeros(dims, dtype=np.float32)
        self._prefilter: PcaPrefilter | None = None
        self._count = self._count_at_mean = 0
        self._stale_from = None

    def _resize(self, items: int) -> None:
        if items > len(self._known):
            room = max(64, items, len(self._known) * 3 // 2)
            self._vectors, self._known = padded(self._vectors, room), padded(self._known, room)
            self._lengths = padded(self._lengths, room, 1)
            self._context.resize(room)
            if self._prefilter is not None:
                self._prefilter.resize(room)

    def _refresh(self, total: int) -> None:
        if self._count >= _GROWTH * self._count_at_mean:
            self._count_at_mean, self._stale_from, self._prefilter = self._count, 0, None
            self._mean = (self._vectors[:total].sum(axis=0, dtype=np.float64) / self._count).astype(np.float32)
        if self._stale_from is None:
            return
        for start, end in _batches(self._stale_from, total):
            self._update_lengths(start, end, total)
        if self._prefilter is None and self._count >= _PREFILTER_FROM:
            self._prefilter, self._stale_from = self._fit_prefilter(total), 0
        if self._prefilter is not None:
            for start, end in _batches(self._stale_from, total):
                self._prefilter.put(start, self._directions(slice(start, end)))
        self._stale_from = None

    def _update_lengths(self, start: int, end: int, total: int) -> None:
        reach = self._context.reach(start, end, total)
        lengths = np.linalg.norm(self._centred(reach), axis=1)
        # A vector at the mean, as the only one is, has no direction: its cosine is 0.
        self._lengths[reach] = np.where(lengths > _ROUNDED, lengths, np.inf)
        directions = self._directions(reach)
        self._context.update(start, end, lambda positions: directions[positions - reach.start], total)

    def _fit_prefilter(self, total: int) -> "PcaPrefilter":
        known_positions = np.flatnonzero(self._known[:total])
        sample = known_positions[:: -(-len(known_positions) // _SAMPLE)]
        in_context = self._context.of(sample, self._directions, total)
        prefilter = PcaPrefilter.fit(self._directions(sample), in_context)
        prefilter.resize(len(self._known))
        return prefilter

    def _cosines(self, query: Rows, positions: NDArray[np.int64] | slice) -> Scores:
        """Exact cosines with these items alone; 0 where one has no vector."""
        cosines = self._vectors[positions].astype(np.float32) @ query
        cosines -= self._mean @ query
        cosines *= self._known[positions] / self._lengths[positions]
        return np.asarray(cosines)

    def _centred(self, positions: NDArray[np.int64] | slice) -> Rows:
        """Vectors less their mean; 0 where there is none."""
        centred = self._vectors[positions].astype(np.float32)
        centred -= self._mean
        centred *= self._known[positions, None]
        return centred

    def _directions(self, positions: NDArray[np.int64] | slice) -> Rows:
        """Centred vectors of length 1."""
        directions = self._centred(positions)
        directions /= self._lengths[positions, None]
        return directions


class PcaPrefilter:
    """First principal components of unit vectors: approximate cosines in a quarter of the time.

    Projected cosines are smaller than true ones, so their mean and deviation come from a sample of whole vectors:
    each alone, and in its context.
    """

    def __init__(self, alone: Rows, in_context: Rows, basis: Rows) -> None:
        self._sample = alone, in_context
        self._basis = basis
        self._rows: Rows = np.zeros((0, basis.shape[1]), dtype=np.float32)

    @classmethod
    def fit(cls, alone: Rows, in_context: Rows) -> Self:
        """Principal components of a sample of unit vectors, shape (samples, dims)."""
        _, _, components = np.linalg.svd(alone - alone.mean(axis=0), full_matrices=False)
        return cls(alone, in_context, np.ascontiguousarray(components[:_PREFILTER_DIMS].T))

    @property
    def size_bytes(self) -> int:
        return sum(map(private_bytes, (self._rows, *self._sample)))

    def snapshot(self, items: int) -> Snapshot:
        alone, in_context = self._sample
        arrays = {"alone": alone, "in_context": in_context, "basis": self._basis, "rows": self._rows[:items]}
        return Snapshot(arrays, {"samples": len(alone), "dims": len(self._basis)})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> Self:
        arrays, samples = snapshot.arrays, snapshot.facts["samples"]
        basis = arrays["basis"][: snapshot.facts["dims"]]
        found = cls(arrays["alone"][:samples], arrays["in_context"][:samples], basis)
        found._rows = arrays["rows"]
        return found

    def resize(self, items: int) -> None:
        """Make room for so many items; the cosine of one without coordinates is 0."""
        self._rows = padded(self._rows, items)

    def put(self, start: int, rows: Rows) -> None:
        """Set the coordinates of consecutive items from their unit vectors."""
        self._rows[start : start + len(rows)] = rows @ self._basis

    def cosines(self, query: Rows, total: int) -> Scores:
        """Approximate cosines of the query with the first `total` items alone."""
        return np.asarray(self._rows[:total] @ (query @ self._basis))

    def moments(self, query: Rows) -> tuple[Moments, Moments]:
        """Moments of the exact cosines in the sample, alone and in context."""
        alone, in_context = self._sample
        return moments(alone @ query), moments(in_context @ query)


def _batches(start: int, total: int) -> Iterator[tuple[int, int]]:
    for begin in range(start, total, _BATCH):
        yield begin, min(begin + _BATCH, total)

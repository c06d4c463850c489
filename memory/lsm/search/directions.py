"""The vectors of a chat's turns, ready to be compared with a question."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.nearness import Nearness, usual
from memory.lsm.search.outlines import Outlines
from memory.lsm.search.stretches import Scores, Stretches
from memory.lsm.search.surroundings import Surroundings

Rows = NDArray[np.float32]

# What all have in common is looked at anew when there are so many times as many.
_GROWTH = 1.25
# Among so many turns, outlines are compared first.
_MANY = 5000
_SAMPLE = 2000
_SAME = 1e-6
_AT_ONCE = 4096


class Directions:
    """Vectors of one model. All of them lie near each other, so what all turns share is taken off each.

    Half precision is exact enough to tell any two turns apart, in half the memory.
    """

    def __init__(self, stretches: Stretches) -> None:
        self._stretches = stretches
        self._stale_from: int | None = None
        self._begin(dims=0)

    @property
    def count(self) -> int:
        """How many turns have a vector."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        outlines = 0 if self._outlines is None else self._outlines.size_bytes
        return self._vectors.nbytes + self._has.nbytes + self._lengths.nbytes + self._around.size_bytes + outlines

    def put(self, position: int, vector: bytes) -> None:
        """That of a turn, little-endian float32."""
        own = np.frombuffer(vector, dtype="<f4")
        if len(own) != self._vectors.shape[1]:
            self._begin(len(own))
        self._make_room(position + 1)
        if not self._has[position]:
            self._count += 1
        self._vectors[position] = _unit(own)
        self._has[position] = True
        first = self._around.first_to_have(position)
        self._stale_from = first if self._stale_from is None else min(first, self._stale_from)

    def nearness(self, question: bytes) -> Nearness | None:
        """To every turn; None where there are no vectors, or only some of another length."""
        asked = np.frombuffer(question, dtype="<f4")
        if not self._count or len(asked) != self._vectors.shape[1]:
            return None
        total = len(self._stretches)
        self._make_room(total)
        self._refresh(total)
        wanted, has = _unit(_unit(asked) - self._mean), self._has[:total]
        if self._outlines is not None:
            alone = self._outlines.like(wanted, total)
            return Nearness(wanted, alone, self._around.all(alone), has, self._outlines.usual(wanted), is_rough=True)
        alone = self._cosines(wanted, slice(total))
        around = self._around.all(alone)
        return Nearness(wanted, alone, around, has, (usual(alone[has]), usual(around[has])), is_rough=False)

    def look_closely(self, near: Nearness, positions: Sequence[int]) -> None:
        """Of rough cosines, have those of these turns exact."""
        here = np.array(positions, dtype=np.int64)
        there = self._around.near(here, len(near.alone))
        near.alone[there] = self._cosines(near.wanted, there)
        near.around[here] = self._around.of(here, near.alone.__getitem__, len(near.alone))

    def _begin(self, dims: int) -> None:
        self._vectors: NDArray[np.float16] = np.zeros((0, dims), dtype=np.float16)
        self._has: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._lengths: Scores = np.ones(0, dtype=np.float32)
        self._around = Surroundings(self._stretches)
        self._mean: Rows = np.zeros(dims, dtype=np.float32)
        self._outlines: Outlines | None = None
        self._count = self._counted = 0
        self._stale_from = None

    def _make_room(self, turns: int) -> None:
        if turns > len(self._has):
            more = max(64, turns, len(self._has) * 3 // 2) - len(self._has)
            self._vectors = np.pad(self._vectors, ((0, more), (0, 0)))
            self._has = np.pad(self._has, (0, more))
            self._lengths = np.pad(self._lengths, (0, more), constant_values=1)
            self._around.make_room(len(self._has))
            if self._outlines is not None:
                self._outlines.make_room(len(self._has))

    def _refresh(self, total: int) -> None:
        if self._count >= _GROWTH * self._counted:
            self._counted, self._stale_from, self._outlines = self._count, 0, None
            self._mean = (self._vectors[:total].sum(axis=0, dtype=np.float64) / self._count).astype(np.float32)
        if self._stale_from is None:
            return
        for start, end in _portions(self._stale_from, total):
            self._measure(start, end, total)
        if self._outlines is None and self._count >= _MANY:
            self._outlines, self._stale_from = self._outlined(total), 0
        if self._outlines is not None:
            for start, end in _portions(self._stale_from, total):
                self._outlines.put(start, self._own(slice(start, end)))
        self._stale_from = None

    def _measure(self, start: int, end: int, total: int) -> None:
        """How long is what is left of vectors once what all share is off; what those around a turn count for."""
        reach = self._around.reach(start, end, total)
        self._lengths[reach] = np.maximum(np.linalg.norm(self._left(reach), axis=1), _SAME)
        own = self._own(reach)
        self._around.measure(start, end, lambda those: own[those - reach.start], total)

    def _outlined(self, total: int) -> Outlines:
        known = np.flatnonzero(self._has[:total])
        sample = known[:: -(-len(known) // _SAMPLE)]
        found = Outlines.of(self._own(sample), self._around.of(sample, self._own, total))
        found.make_room(len(self._has))
        return found

    def _cosines(self, wanted: Rows, positions: NDArray[np.int64] | slice) -> Scores:
        """With these turns alone; 0 where one has no vector."""
        found = self._vectors[positions].astype(np.float32) @ wanted
        found -= self._mean @ wanted
        found *= self._has[positions] / self._lengths[positions]
        return np.asarray(found)

    def _left(self, positions: NDArray[np.int64] | slice) -> Rows:
        """What is left of the vectors of turns once what all share is off; 0 where there is none."""
        left = self._vectors[positions].astype(np.float32)
        left -= self._mean
        left *= self._has[positions, None]
        return left

    def _own(self, positions: NDArray[np.int64] | slice) -> Rows:
        """The same in length 1."""
        left = self._left(positions)
        left /= self._lengths[positions, None]
        return left


def _portions(start: int, total: int) -> Iterator[tuple[int, int]]:
    for begin in range(start, total, _AT_ONCE):
        yield begin, min(begin + _AT_ONCE, total)


def _unit(vector: Rows) -> Rows:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), _SAME), dtype=np.float32)

"""How near in meaning the turns of a chat are to a question."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.stretches import Scores, Stretches

Columns = NDArray[np.float32]

# What the turns around it say blends into the meaning of a turn, most of all what it answers to.
_BLEND: Mapping[int, float] = {-2: 0.3, -1: 0.6, 0: 1.0, 1: 0.3}
# What all have in common is looked at anew when there are so many times as many.
_GROWTH = 1.25
_SAME = 1e-6
_AT_ONCE = 4096


class Directions:
    """Vectors of one model. All of them lie near each other, so what all turns share is taken off each.

    A column is a turn: a question is compared with all of them in half the time it takes where a row is one.
    """

    def __init__(self, stretches: Stretches) -> None:
        self._stretches = stretches
        self._columns: Columns = np.zeros((0, 0), dtype=np.float32)
        self._has: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._count = self._counted = 0
        self._stale_from: int | None = None
        self._mean: Columns = np.zeros(0, dtype=np.float32)
        self._lengths: Scores = np.zeros(0, dtype=np.float32)
        self._blended: Scores = np.zeros(0, dtype=np.float32)

    @property
    def count(self) -> int:
        """How many turns have a vector."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        return self._columns.nbytes + 9 * len(self._has)

    def put(self, position: int, vector: bytes) -> None:
        """That of a turn, little-endian float32."""
        own = np.frombuffer(vector, dtype="<f4")
        self._make_room(position, len(own))
        if not self._has[position]:
            self._count += 1
        self._columns[:, position] = _unit(own)
        self._has[position] = True
        first = max(0, position - max(_BLEND))
        self._stale_from = first if self._stale_from is None else min(first, self._stale_from)

    def nearness(self, question: bytes) -> tuple[Scores, Scores]:
        """Of every turn alone, then with those around it, as cosines; not a number where it has no vector."""
        total = len(self._stretches)
        asked = np.frombuffer(question, dtype="<f4")
        nothing = np.full(total, np.nan, dtype=np.float32)
        if not self._count or len(asked) != len(self._columns):
            return nothing, nothing
        self._make_room(total - 1, len(asked))
        self._refresh(total)
        wanted = _unit(_unit(asked) - self._mean)
        has = self._has[:total]
        alone: Scores = wanted @ self._columns[:, :total]
        alone -= self._mean @ wanted
        alone *= has / self._lengths[:total]
        around = np.zeros(total, dtype=np.float32)
        for offset, share in _BLEND.items():
            around += share * self._stretches.shifted(alone, offset)
        around /= self._blended[:total]
        if self._count < total:
            alone[~has] = around[~has] = np.nan
        return alone, around

    def _make_room(self, position: int, dims: int) -> None:
        known, room = self._columns.shape
        if position < room and known == dims:
            return
        wider = max(64, position + 1, room * 3 // 2)
        columns, has = np.zeros((dims, wider), dtype=np.float32), np.zeros(wider, dtype=np.bool_)
        lengths, blended = np.ones(wider, dtype=np.float32), np.ones(wider, dtype=np.float32)
        if known == dims:
            columns[:, :room], has[:room] = self._columns, self._has
            lengths[:room], blended[:room] = self._lengths, self._blended
        else:
            self._count = self._counted = 0
        self._columns, self._has, self._lengths, self._blended = columns, has, lengths, blended

    def _refresh(self, total: int) -> None:
        if self._count >= _GROWTH * self._counted:
            self._counted, self._stale_from = self._count, 0
            self._mean = (self._columns[:, :total].sum(axis=1, dtype=np.float64) / self._count).astype(np.float32)
        if self._stale_from is None:
            return
        for start in range(self._stale_from, total, _AT_ONCE):
            self._measure(start, min(start + _AT_ONCE, total), total)
        self._stale_from = None

    def _measure(self, start: int, end: int, total: int) -> None:
        """The lengths of what is left of vectors once what all share is off, alone then blended."""
        # Some more on either side, for the sake of those that look around there.
        first, last = max(0, start + min(_BLEND)), min(total, end + max(_BLEND))
        own = (self._columns[:, first:last].T - self._mean) * self._has[first:last, None]
        lengths = np.maximum(np.linalg.norm(own, axis=1), _SAME)
        own /= lengths[:, None]
        self._lengths[start:end] = lengths[start - first : end - first]
        blended = np.zeros((end - start, own.shape[1]), dtype=np.float32)
        here = np.arange(start, end)
        for offset, share in _BLEND.items():
            there = here + offset
            is_there = (there >= 0) & (there < total)
            same = is_there.copy()
            same[is_there] = self._stretches.of(here[is_there]) == self._stretches.of(there[is_there])
            blended[same] += share * own[there[same] - first]
        self._blended[start:end] = np.maximum(np.linalg.norm(blended, axis=1), _SAME)


def _unit(vector: Columns) -> Columns:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), _SAME), dtype=np.float32)

"""Context window: weighted mean of an item's vector with those of its neighbours."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from retrieval.segments import Scores, Segments
from retrieval.similarity import EPSILON

Rows = NDArray[np.float32]

# Weight of the neighbour at each offset: in a dialogue most of all the one that an item answers.
_WEIGHTS: Mapping[int, float] = {-2: 0.3, -1: 0.6, 0: 1.0, 1: 0.3}

# Values of single items by their positions: directions of shape (n, dims) or cosines of shape (n,).
ValuesOf = Callable[[NDArray[np.int64]], Rows]


class ContextWindow:
    """Per item and offset the weight of that neighbour, normalised so that the sum of directions has length 1."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._weights: dict[int, Scores] = dict.fromkeys(_WEIGHTS, np.zeros(0, dtype=np.float32))

    @property
    def size_bytes(self) -> int:
        """Estimated memory."""
        return sum(each.nbytes for each in self._weights.values())

    @staticmethod
    def reach(start: int, end: int, total: int) -> slice:
        """Items in the windows of those from `start` to `end`."""
        return slice(max(0, start + min(_WEIGHTS)), min(total, end + max(_WEIGHTS)))

    @staticmethod
    def first_affected(position: int) -> int:
        """First item whose window contains this one."""
        return max(0, position - max(_WEIGHTS))

    def resize(self, items: int) -> None:
        """Make room for so many items."""
        more = items - len(self._weights[0])
        self._weights = {offset: np.pad(each, (0, more)) for offset, each in self._weights.items()}

    def update(self, start: int, end: int, directions: ValuesOf, total: int) -> None:
        """Compute the weights of the items from `start` to `end` from the unit vectors of single items."""
        here = np.arange(start, end)
        for offset, weight in _WEIGHTS.items():
            self._weights[offset][start:end] = weight * self._segments.has_neighbour(here, offset)
        length = np.maximum(np.linalg.norm(self.of(here, directions, total), axis=1), EPSILON)
        for weights in self._weights.values():
            weights[start:end] /= length

    def of(self, positions: NDArray[np.int64], values: ValuesOf, total: int) -> Rows:
        """Directions or cosines of items in their context, from those of single items."""
        parts = (
            np.einsum("i,i...->i...", weights[positions], values(self._neighbours(positions, offset, total)))
            for offset, weights in self._weights.items()
        )
        return np.asarray(sum(parts), dtype=np.float32)

    def all(self, alone: Scores) -> Scores:
        """Cosines of all items in their context, from those of single items, shape (items,); faster than `of`."""
        total = len(alone)
        cosines = np.zeros_like(alone)
        for offset, weights in self._weights.items():
            here = slice(max(0, -offset), total - max(0, offset))
            there = slice(max(0, offset), total - max(0, -offset))
            cosines[here] += weights[here] * alone[there]
        return cosines

    def members(self, positions: NDArray[np.int64], total: int) -> NDArray[np.int64]:
        """These items and those in their windows, ascending."""
        return np.unique(np.concatenate([self._neighbours(positions, offset, total) for offset in _WEIGHTS]))

    @staticmethod
    def _neighbours(positions: NDArray[np.int64], offset: int, total: int) -> NDArray[np.int64]:
        return np.clip(positions + offset, 0, total - 1)

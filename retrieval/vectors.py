"""Exact nearest-neighbour search over vectors in memory."""

import numpy as np
from numpy.typing import NDArray

from retrieval.similarity import as_floats, normalized, top

Mask = NDArray[np.bool_]

_FIRST_ROWS = 1024
# Below this share of rows, copying the selected vectors is faster than comparing all of them.
_FULL_SCAN_SHARE = 0.2
# Rows per copy, so that a copy stays in the processor's cache until it is compared.
_BLOCK = 512


class VectorMatrix:
    """Vectors by key as float32 rows of length 1, shape (capacity, dim). Not thread-safe.

    Rows of dropped keys are reused, so that columns of other data can be kept beside the matrix by row.
    """

    def __init__(self, dim: int) -> None:
        self._vectors: NDArray[np.float32] = np.zeros((_FIRST_ROWS, dim), dtype=np.float32)
        self._rows: dict[str, int] = {}
        self._free: list[int] = []

    @property
    def size(self) -> int:
        """Number of rows, free ones included: all rows in use are below it."""
        return len(self._rows) + len(self._free)

    @property
    def capacity(self) -> int:
        return len(self._vectors)

    def row_of(self, key: str) -> int | None:
        return self._rows.get(key)

    def put(self, key: str, vector: bytes) -> int:
        """Add a vector, little-endian float32, for a key that has none; returns its row."""
        row = self._free.pop() if self._free else len(self._rows)
        if row == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._vectors[row] = _direction(vector)
        self._rows[key] = row
        return row

    def drop(self, key: str) -> int | None:
        """Free the row of a key; returns the row, None where there is none."""
        row = self._rows.pop(key, None)
        if row is not None:
            self._free.append(row)
        return row

    def nearest(self, vector: bytes, mask: Mask, limit: int) -> list[tuple[int, float]]:
        """Up to `limit` rows of the mask, shape (size,), with the highest cosines; in no particular order."""
        rows = np.flatnonzero(mask)
        if not len(rows):
            return []
        scores = self._cosines(rows, _direction(vector).astype(np.float32))
        return [(int(rows[place]), float(scores[place])) for place in top(scores, limit)]

    def _cosines(self, rows: NDArray[np.intp], direction: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(rows) >= self.size * _FULL_SCAN_SHARE:
            return np.asarray((self._vectors[: self.size] @ direction)[rows])
        scores = np.empty(len(rows), dtype=np.float32)
        for first in range(0, len(rows), _BLOCK):
            block = slice(first, first + _BLOCK)
            scores[block] = self._vectors[rows[block]] @ direction
        return scores


def _direction(vector: bytes) -> NDArray[np.float64]:
    return normalized(as_floats(vector).astype(np.float64))

"""What tells the turns of a large chat apart at a glance."""

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.stretches import Scores

Rows = NDArray[np.float32]

# A quarter of what a vector has: of the 50 turns nearest to a question, 99.9 % are among the 256 whose outlines are
# (997 questions to 2,760 turns of people).
_DIMS = 96
_SAME = 1e-6


class Outlines:
    """The coordinates in which the vectors of turns differ most (principal components), in a quarter of the time.

    To a question an outline is less like or unlike than the turn is; how like turns are as a rule is known exactly.
    """

    def __init__(self, dims: int) -> None:
        self._count = 0
        self._means = np.zeros((2, dims))
        self._squares = np.zeros((2, dims, dims))
        self._basis: Rows = np.zeros((dims, 0), dtype=np.float32)
        self._rows: Rows = np.zeros((0, min(dims, _DIMS)), dtype=np.float32)

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        return self._rows.nbytes + self._squares.nbytes

    def learn(self, alone: Rows, around: Rows) -> None:
        """What some of the turns are like, then what they are like with those around them; both in length 1."""
        self._count += len(alone)
        for place, rows in enumerate((alone, around)):
            self._means[place] += rows.sum(axis=0)
            self._squares[place] += rows.T @ rows

    def settle(self) -> None:
        """That was all of them."""
        self._means /= self._count
        self._squares /= self._count
        self._squares -= self._means[:, :, None] * self._means[:, None, :]
        _, directions = np.linalg.eigh(self._squares[0])
        self._basis = directions[:, -_DIMS:].astype(np.float32)

    def put(self, start: int, rows: Rows) -> None:
        """Those of turns one after the other."""
        if (more := start + len(rows) - len(self._rows)) > 0:
            self._rows = np.pad(self._rows, ((0, more + len(self._rows) // 2), (0, 0)))
        self._rows[start : start + len(rows)] = rows @ self._basis

    def like(self, wanted: Rows, total: int) -> Scores:
        """About the cosines with the first turns."""
        return np.asarray(self._rows[:total] @ (wanted @ self._basis))

    def usual(self, wanted: Rows) -> tuple[tuple[float, float], tuple[float, float]]:
        """Mean and deviation of the true cosines with all turns, alone then with those around them."""
        alone, around = (
            (float(mean @ wanted), max(float(wanted @ squares @ wanted), _SAME) ** 0.5)
            for mean, squares in zip(self._means, self._squares, strict=True)
        )
        return alone, around

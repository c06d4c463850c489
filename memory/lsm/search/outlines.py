"""What tells the turns of a large chat apart at a glance."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.nearness import Usual, usual
from memory.lsm.search.stretches import Scores

Rows = NDArray[np.float32]

# A quarter of what a vector has: of the 50 turns nearest to a question, 99.9 % are among the 256 whose outlines are
# (997 questions to 2,760 turns of people).
_DIMS = 96


class Outlines:
    """The coordinates in which the vectors of turns differ most (principal components), in a quarter of the time.

    To a question an outline is less like or unlike than the turn is; how like turns are as a rule, a sample of whole
    ones tells: each alone, then with those around it.
    """

    def __init__(self, alone: Rows, around: Rows, basis: Rows) -> None:
        self._sample = alone, around
        self._basis = basis
        self._rows: Rows = np.zeros((0, basis.shape[1]), dtype=np.float32)

    @classmethod
    def of(cls, alone: Rows, around: Rows) -> Self:
        """That a sample teaches, vectors in length 1."""
        _, _, directions = np.linalg.svd(alone - alone.mean(axis=0), full_matrices=False)
        return cls(alone, around, np.ascontiguousarray(directions[:_DIMS].T))

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        return self._rows.nbytes + sum(each.nbytes for each in self._sample)

    def make_room(self, turns: int) -> None:
        """For so many; one that nothing is put for is like nothing."""
        self._rows = np.pad(self._rows, ((0, turns - len(self._rows)), (0, 0)))

    def put(self, start: int, rows: Rows) -> None:
        """Those of turns one after the other."""
        self._rows[start : start + len(rows)] = rows @ self._basis

    def like(self, wanted: Rows, total: int) -> Scores:
        """About the cosines with the first turns."""
        return np.asarray(self._rows[:total] @ (wanted @ self._basis))

    def usual(self, wanted: Rows) -> tuple[Usual, Usual]:
        """What is usual of the true cosines of turns alone, of turns with those around them."""
        alone, around = self._sample
        return usual(alone @ wanted), usual(around @ wanted)

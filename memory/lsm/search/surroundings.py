"""What those around a turn add to what it means."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.stretches import Scores, Stretches

Rows = NDArray[np.float32]

# Most of all what it answers to.
_BLEND: Mapping[int, float] = {-2: 0.3, -1: 0.6, 0: 1.0, 1: 0.3}
_SAME = 1e-6

# What each of these turns alone is like.
Said = Callable[[NDArray[np.int64]], Rows]


class Surroundings:
    """For each turn what its direction, what that of each turn near it counts for, so that together they are one."""

    def __init__(self, stretches: Stretches) -> None:
        self._stretches = stretches
        self._shares: dict[int, Scores] = dict.fromkeys(_BLEND, np.zeros(0, dtype=np.float32))

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        return sum(each.nbytes for each in self._shares.values())

    @staticmethod
    def reach(start: int, end: int, total: int) -> slice:
        """The turns that have to do with those from `start` to `end`."""
        return slice(max(0, start + min(_BLEND)), min(total, end + max(_BLEND)))

    @staticmethod
    def first_to_have(position: int) -> int:
        """The first turn that a turn is around."""
        return max(0, position - max(_BLEND))

    def make_room(self, turns: int) -> None:
        """For so many."""
        more = turns - len(self._shares[0])
        self._shares = {offset: np.pad(each, (0, more)) for offset, each in self._shares.items()}

    def measure(self, start: int, end: int, own: Said, total: int) -> None:
        """For turns one after the other, from the directions of turns."""
        here = np.arange(start, end)
        for offset, share in _BLEND.items():
            self._shares[offset][start:end] = share * self._stretches.are_same(here, offset)
        length = np.maximum(np.linalg.norm(self.of(here, own, total), axis=1), _SAME)
        for share_of in self._shares.values():
            share_of[start:end] /= length

    def of(self, positions: NDArray[np.int64], said: Said, total: int) -> Rows:
        """Turns with those around them: their directions, or their cosines, from those of each alone."""
        parts = (
            np.einsum("i,i...->i...", share[positions], said(self._near(positions, offset, total)))
            for offset, share in self._shares.items()
        )
        return np.asarray(sum(parts), dtype=np.float32)

    def all(self, alone: Scores) -> Scores:
        """The cosines of all turns at once, which takes less time."""
        total = len(alone)
        found = np.zeros_like(alone)
        for offset, share in self._shares.items():
            here = slice(max(0, -offset), total - max(0, offset))
            there = slice(max(0, offset), total - max(0, -offset))
            found[here] += share[here] * alone[there]
        return found

    def near(self, positions: NDArray[np.int64], total: int) -> NDArray[np.int64]:
        """These turns, those around them."""
        return np.unique(np.concatenate([self._near(positions, offset, total) for offset in _BLEND]))

    @staticmethod
    def _near(positions: NDArray[np.int64], offset: int, total: int) -> NDArray[np.int64]:
        return np.clip(positions + offset, 0, total - 1)

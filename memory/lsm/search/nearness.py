"""How near in meaning the turns of a chat are to a question."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.stretches import Scores

_SAME = 1e-6

# Mean and deviation.
Usual = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Nearness:
    """Cosines with every turn alone, with those around it; which turns they are known of; what is usual of either."""

    wanted: NDArray[np.float32]
    alone: Scores
    around: Scores
    has: NDArray[np.bool_]
    usual: tuple[Usual, Usual]
    is_rough: bool

    @property
    def signals(self) -> Mapping[str, Scores]:
        """Only the spread tells what is near; a turn without a vector is as near as the average."""
        alone, around = self.usual
        return {
            "meaning": self._standing_out(self.alone, *alone),
            "meaning_in_context": self._standing_out(self.around, *around),
        }

    def nearest(self, allowed: NDArray[np.bool_]) -> float | None:
        """The highest cosine that one of these has with those around it."""
        near = self.around[allowed & self.has]
        return float(near.max()) if near.size else None

    def _standing_out(self, cosines: Scores, mean: float, deviation: float) -> Scores:
        return np.asarray((cosines - np.float32(mean)) * (self.has / np.float32(deviation)))


def usual(cosines: Scores) -> Usual:
    """Of those that are known."""
    return (float(cosines.mean()), max(float(cosines.std()), _SAME)) if cosines.size else (0.0, 1.0)

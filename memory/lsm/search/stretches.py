"""Which turns of a chat follow each other without a pause."""

from array import array
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

# A number for each turn of a chat: what tells turns apart does not need more digits, which take time.
Scores = NDArray[np.float32]

# A stretch is about as much as an episode; but episodes change as they are looked at again, a stretch never does.
_MOST_TURNS = 50


class Stretches:
    """In the order of the dialogue. Only turns of one stretch are of one context."""

    def __init__(self, gap: timedelta) -> None:
        self._gap_s = gap.total_seconds()
        self._numbers: array[int] = array("I")
        self._times: array[float] = array("d")
        self._starts: array[int] = array("I")

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def times(self) -> NDArray[np.float64]:
        """When each turn was said, in seconds of the epoch."""
        return np.frombuffer(self._times, dtype=np.float64)

    def add(self, time: datetime) -> None:
        """The next turn, no earlier than the last."""
        said_s = time.timestamp()
        here = len(self._numbers)
        if not here or said_s - self._times[-1] > self._gap_s or here - self._starts[-1] >= _MOST_TURNS:
            self._starts.append(here)
        self._numbers.append(len(self._starts) - 1)
        self._times.append(said_s)

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The stretch of each of these turns."""
        return self._all[positions]

    def are_same(self, positions: NDArray[np.int64], offset: int) -> NDArray[np.bool_]:
        """Whether the turn so far behind each of these is there, in the same stretch."""
        there = positions + offset
        found = (there >= 0) & (there < len(self))
        found[found] = self.of(positions[found]) == self.of(there[found])
        return found

    def shifted(self, values: Scores, offset: int) -> Scores:
        """At every turn the value (or row) of the turn so far behind it, 0 where that is another stretch's."""
        if not offset:
            return values
        found = np.zeros_like(values)
        here, there = (slice(-offset), slice(offset, None)) if offset > 0 else (slice(-offset, None), slice(offset))
        np.multiply(values[there], self._all[here] == self._all[there], out=found[here])
        return found

    def best(self, values: Scores) -> Scores:
        """At every turn the highest value that any of its stretch has."""
        if not len(values):
            return values
        highest = np.maximum.reduceat(values, np.frombuffer(self._starts, dtype=np.uint32).astype(np.int64))
        return np.asarray(highest[self._all])

    @property
    def _all(self) -> NDArray[np.uint32]:
        return np.frombuffer(self._numbers, dtype=np.uint32)

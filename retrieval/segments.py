"""Segments of a sequence: runs of items that follow each other without a long pause."""

from array import array
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

# One value per item, shape (items,): float32 distinguishes items well enough at half the time of float64.
Scores = NDArray[np.float32]

# About the size of an episode; unlike episodes, a segment never changes once items follow it.
_MAX_ITEMS = 50


class Segments:
    """Times and segment numbers of the items of a sequence; only items of one segment are context of each other."""

    def __init__(self, gap: timedelta) -> None:
        self._gap_s = gap.total_seconds()
        self._numbers: array[int] = array("I")
        self._times: array[float] = array("d")
        self._starts: array[int] = array("I")

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def times(self) -> NDArray[np.float64]:
        """Time of every item in seconds since the epoch, shape (items,)."""
        return np.frombuffer(self._times, dtype=np.float64)

    def add(self, time: datetime) -> None:
        """Append an item, no earlier than the last; a pause or a full segment starts the next one."""
        seconds = time.timestamp()
        position = len(self._numbers)
        if not position or seconds - self._times[-1] > self._gap_s or position - self._starts[-1] >= _MAX_ITEMS:
            self._starts.append(position)
        self._numbers.append(len(self._starts) - 1)
        self._times.append(seconds)

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Segment number of each of these items."""
        return self._all[positions]

    def has_neighbour(self, positions: NDArray[np.int64], offset: int) -> NDArray[np.bool_]:
        """Whether the item at `offset` from each of these exists and is in the same segment."""
        neighbours = positions + offset
        exists = (neighbours >= 0) & (neighbours < len(self))
        exists[exists] = self.of(positions[exists]) == self.of(neighbours[exists])
        return exists

    def shifted(self, values: Scores, offset: int) -> Scores:
        """For every item the value of the item at `offset` from it, 0 where that is in another segment."""
        if not offset:
            return values
        shifted = np.zeros_like(values)
        here, there = (slice(-offset), slice(offset, None)) if offset > 0 else (slice(-offset, None), slice(offset))
        np.multiply(values[there], self._all[here] == self._all[there], out=shifted[here])
        return shifted

    def maximum(self, values: Scores) -> Scores:
        """For every item the highest value in its segment, shape (items,)."""
        if not len(values):
            return values
        highest = np.maximum.reduceat(values, np.frombuffer(self._starts, dtype=np.uint32).astype(np.int64))
        return np.asarray(highest[self._all])

    @property
    def _all(self) -> NDArray[np.uint32]:
        return np.frombuffer(self._numbers, dtype=np.uint32)

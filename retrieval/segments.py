"""Segments of a sequence, runs of items without a long pause between them, and context windows of vectors in them."""

from array import array
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrieval.similarity import EPSILON
from retrieval.snapshots import Arrays, Snapshot, padded, private_bytes

# One value per item, shape (items,): float32 distinguishes items well enough at half the time of float64.
Scores = NDArray[np.float32]

# About the size of an episode; unlike episodes, a segment never changes once items follow it.
_MAX_ITEMS = 50


def aligned(offset: int, total: int) -> tuple[slice, slice]:
    """Those of `total` items that have one at `offset` from them, and these others."""
    before, behind = max(0, -offset), max(0, offset)
    return slice(before, max(0, total - behind)), slice(behind, max(0, total - before))


class Segments:
    """Times and segment numbers of the items of a sequence; only items of one segment are context of each other.

    A reply, as an assistant's, belongs to what it answers: what is said after it is no context of it, nor it of that.
    """

    def __init__(self, gap: timedelta) -> None:
        self._gap_s = gap.total_seconds()
        self._numbers: array[int] = array("I")
        self._times: array[float] = array("d")
        self._starts: array[int] = array("I")
        self._replies = bytearray()

    def __len__(self) -> int:
        return len(self._numbers)

    def snapshot(self) -> Snapshot:
        """Times and segments of all items, and which are replies."""
        arrays: Arrays = {
            "numbers": self._all,
            "times": self.times,
            "starts": np.frombuffer(self._starts, dtype=np.uint32),
            "replies": self._is_reply,
        }
        return Snapshot(arrays, {"gap_s": self._gap_s})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, items: int) -> Self:
        """The segments of the first `items`."""
        found = cls(timedelta(seconds=snapshot.facts["gap_s"]))
        found._numbers = array("I", snapshot.arrays["numbers"][:items].tobytes())
        found._times = array("d", snapshot.arrays["times"][:items].tobytes())
        found._replies = bytearray(snapshot.arrays["replies"][:items].tobytes())
        segments = found._numbers[-1] + 1 if items else 0
        found._starts = array("I", snapshot.arrays["starts"][:segments].tobytes())
        return found

    @property
    def times(self) -> NDArray[np.float64]:
        """Time of every item in seconds since the epoch, shape (items,)."""
        return np.frombuffer(self._times, dtype=np.float64)

    def add(self, time: datetime, *, is_reply: bool = False) -> None:
        """Append an item, no earlier than the last; a pause or a full segment starts the next one."""
        seconds = time.timestamp()
        position = len(self._numbers)
        if not position or seconds - self._times[-1] > self._gap_s or position - self._starts[-1] >= _MAX_ITEMS:
            self._starts.append(position)
        self._numbers.append(len(self._starts) - 1)
        self._times.append(seconds)
        self._replies.append(is_reply)

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Segment number of each of these items."""
        return self._all[positions]

    def has_neighbour(self, positions: NDArray[np.int64], offset: int) -> NDArray[np.bool_]:
        """Whether the item at `offset` from each of these exists and is context of it."""
        neighbours = positions + offset
        exists = (neighbours >= 0) & (neighbours < len(self))
        exists[exists] = self._are_context(positions[exists], neighbours[exists], offset)
        return exists

    def shifted(self, values: Scores, offset: int) -> Scores:
        """For every item the value of the item at `offset` from it, 0 where that is no context of it."""
        if not offset:
            return values
        shifted = np.zeros_like(values)
        items, neighbours = aligned(offset, len(values))
        np.multiply(values[neighbours], self._are_context(items, neighbours, offset), out=shifted[items])
        return shifted

    def maximum(self, values: Scores) -> Scores:
        """For every item the highest value in its segment, shape (items,)."""
        if not len(values):
            return values
        highest = np.maximum.reduceat(values, np.frombuffer(self._starts, dtype=np.uint32).astype(np.int64))
        return np.asarray(highest[self._all])

    def _are_context(
        self, items: NDArray[np.int64] | slice, neighbours: NDArray[np.int64] | slice, offset: int
    ) -> NDArray[np.bool_]:
        """Whether each item and its neighbour at `offset` are in one segment, and the earlier of them is no reply."""
        is_same = self._all[items] == self._all[neighbours]
        earlier = neighbours if offset < 0 else items
        return np.asarray(is_same & ~self._is_reply[earlier] if offset else is_same)

    @property
    def _all(self) -> NDArray[np.uint32]:
        return np.frombuffer(self._numbers, dtype=np.uint32)

    @property
    def _is_reply(self) -> NDArray[np.bool_]:
        return np.frombuffer(self._replies, dtype=np.bool_)


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
        return sum(map(private_bytes, self._weights.values()))

    def snapshot(self, items: int) -> Snapshot:
        """The weights of the first `items`."""
        return Snapshot({str(offset): weights[:items] for offset, weights in self._weights.items()})

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot, segments: Segments) -> Self:
        window = cls(segments)
        window._weights = {offset: snapshot.arrays[str(offset)] for offset in _WEIGHTS}
        return window

    @staticmethod
    def reach(start: int, end: int, total: int) -> slice:
        """Items in the windows of those from `start` to `end`."""
        return slice(max(0, start + min(_WEIGHTS)), min(total, end + max(_WEIGHTS)))

    @staticmethod
    def first_affected(position: int) -> int:
        """First item whose window contains this one."""
        return max(0, position - max(_WEIGHTS))

    def resize(self, items: int) -> None:
        self._weights = {offset: padded(weights, items) for offset, weights in self._weights.items()}

    def update(self, start: int, end: int, directions: ValuesOf, total: int) -> None:
        """Compute the weights of the items from `start` to `end` from the unit vectors of single items."""
        positions = np.arange(start, end)
        for offset, weight in _WEIGHTS.items():
            self._weights[offset][start:end] = weight * self._segments.has_neighbour(positions, offset)
        length = np.maximum(np.linalg.norm(self.of(positions, directions, total), axis=1), EPSILON)
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
            items, neighbours = aligned(offset, total)
            cosines[items] += weights[items] * alone[neighbours]
        return cosines

    def members(self, positions: NDArray[np.int64], total: int) -> NDArray[np.int64]:
        """These items and those in their windows, ascending."""
        return np.unique(np.concatenate([self._neighbours(positions, offset, total) for offset in _WEIGHTS]))

    @staticmethod
    def _neighbours(positions: NDArray[np.int64], offset: int, total: int) -> NDArray[np.int64]:
        return np.clip(positions + offset, 0, total - 1)

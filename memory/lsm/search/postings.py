"""Which turns of a chat have which words."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.stretches import Scores, Stretches

# As is usual: how soon a word said again counts for no more, how much a long text is held against it.
_SATURATION = 1.2
_LENGTH = 0.75
# A turn is found by what was said just before it, too, and by what was said to it.
CONTEXT = (-2, -1, 0, 1)
_ALONE = (0,)
# Four bits of each entry say how often the turn has the word; more often counts for no more.
_TIMES_BITS = 4
_MOST_TIMES = (1 << _TIMES_BITS) - 1
# A word with the list of those that have it, whatever is in the list.
_WORD_BYTES = 200


class Postings:
    """BM25 over turns, each alone or with those around it; only what each turn has itself is stored."""

    def __init__(self, stretches: Stretches) -> None:
        self._stretches = stretches
        self._entries: dict[str, array[int]] = {}
        self._lengths: array[int] = array("I")
        self._count = 0
        self._burdens_of: dict[tuple[int, ...], Scores] = {}

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        return 4 * (len(self._lengths) + self._count) + _WORD_BYTES * len(self._entries)

    def add(self, stems: Sequence[str]) -> None:
        """The next turn."""
        position = len(self._lengths) << _TIMES_BITS
        counted = Counter(stems)
        for stem, times in counted.items():
            self._entries.setdefault(stem, array("I")).append(position | min(times, _MOST_TIMES))
        self._count += len(counted)
        self._lengths.append(len(stems))
        self._burdens_of.clear()

    def scores(self, stems: Iterable[str], offsets: Sequence[int] = _ALONE) -> Scores:
        """Of every turn, with those at these offsets in its text; 0 where it has none of the words."""
        total = len(self._lengths)
        found = np.zeros(total, dtype=np.float32)
        burdens = self._burdens(tuple(offsets))
        for stem in stems:
            having, often = self._parted(stem) if offsets == _ALONE else self._times(stem, offsets)
            if having.size:
                found[having] += _rarity(having.size, total) * often / (often + burdens[having])
        return found

    def having(self, stem: str) -> NDArray[np.int64]:
        """The positions of the turns that have the word."""
        return self._parted(stem)[0]

    def rarity(self, stem: str) -> float:
        """What the word weighs here; the most there is where nobody has said it."""
        return _rarity(len(self._entries.get(stem, ())), len(self._lengths))

    def _burdens(self, offsets: tuple[int, ...]) -> Scores:
        """How much the length of each text is held against it."""
        if offsets not in self._burdens_of:
            own = np.frombuffer(self._lengths, dtype=np.uint32).astype(np.float32)
            lengths = sum((self._stretches.shifted(own, offset) for offset in offsets), np.zeros_like(own))
            mean = float(lengths.mean()) if len(own) else 1.0
            self._burdens_of[offsets] = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / max(mean, 1.0))
        return self._burdens_of[offsets]

    def _times(self, stem: str, offsets: Sequence[int]) -> tuple[NDArray[np.int64], Scores]:
        positions, times = self._parted(stem)
        total = len(self._lengths)
        found = np.zeros(total, dtype=np.float32)
        for offset in offsets:
            if not offset:
                found[positions] += times
                continue
            at = positions - offset
            is_there = (at >= 0) & (at < total)
            at, of, often = at[is_there], positions[is_there], times[is_there]
            same = self._stretches.of(at) == self._stretches.of(of)
            # Positions of one word are distinct, so that no addition is lost.
            found[at[same]] += often[same]
        having = np.flatnonzero(found > 0)
        return having, found[having]

    def _parted(self, stem: str) -> tuple[NDArray[np.int64], Scores]:
        packed = np.frombuffer(self._entries.get(stem, array("I")), dtype=np.uint32).astype(np.int64)
        return packed >> _TIMES_BITS, (packed & _MOST_TIMES).astype(np.float32)


def _rarity(having: int, total: int) -> float:
    return math.log(1 + max(total - having + 0.5, 0) / (having + 0.5))

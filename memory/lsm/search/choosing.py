"""Which turns are worth the words that may be returned."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

# Of each clause of a question, so many of its own best turns are among the first.
OF_EACH_PART = 3
_SHORTEST = 2


def woven(order: Sequence[int], parts: Sequence[Sequence[int]]) -> list[int]:
    """The best of the whole question, its clauses' best among them: two of the whole, then one of each clause."""
    if not parts:
        return list(order)
    head = zip_longest(order[0 : 2 * OF_EACH_PART : 2], order[1 : 2 * OF_EACH_PART : 2], *parts)
    first = (each for row in head for each in row if each is not None)
    return list(dict.fromkeys([*first, *order]))


def fitting(order: Iterable[int], words: NDArray[np.uint32], budget_words: int) -> list[int]:
    """The best first, each whole or not at all; a shorter one may still find room where a longer one did not."""
    left = budget_words
    chosen: list[int] = []
    for position in order:
        if words[position] <= left:
            chosen.append(position)
            left -= int(words[position])
        if left < _SHORTEST:
            break
    return chosen

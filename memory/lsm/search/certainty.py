"""Whether memory has anything on a matter."""

import math
from typing import Literal

from memory.lsm.search.ranking import Ranked

Confidence = Literal["found", "weak", "nothing"]

# Fitted to questions that were asked of their own dialogue, then of a stranger's: of 100 questions whose answer was
# there, 88 are `found`, 1 is `nothing`; of 100 whose answer was not, 22 are `found`, 50 `nothing`.
_COVERAGE, _NEAREST, _MIDDLE = 8.75, 19.7, -7.76
_COVERAGE_ALONE, _MIDDLE_ALONE = 16.3, -3.15
_FOUND, _NOTHING = 0.5, 0.1
# Of fewer turns nothing tells which are near: what all of them share is nearly all that they are.
_FEWEST_TURNS = 12


def confidence(ranked: Ranked, has_exact: bool) -> Confidence:
    """By whether a turn has every word asked for, else by how many one has, by how near in meaning any is."""
    if not ranked.order:
        return "nothing"
    if has_exact:
        return "found"
    if ranked.nearest is None or len(ranked.scores) < _FEWEST_TURNS:
        if not ranked.coverage:
            return "nothing"
        evidence = _COVERAGE_ALONE * ranked.coverage + _MIDDLE_ALONE
    else:
        evidence = _COVERAGE * ranked.coverage + _NEAREST * ranked.nearest + _MIDDLE
    likely = 1 / (1 + math.exp(-evidence))
    return "found" if likely >= _FOUND else "weak" if likely >= _NOTHING else "nothing"

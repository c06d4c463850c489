"""How many words a layer may have."""

import math
from dataclasses import dataclass

# Spec 002 NF4: hot to warm 3–10×, warm to cold 10–20×.
WARM_LEAST, WARM_MOST = 3.0, 10.0
COLD_LEAST, COLD_MOST = 10.0, 20.0
# Below this, one sentence is all that a cold episode is, with a few tags where they make it no longer than this.
SHORT_WORDS = 400
_ONE_SENTENCE_WORDS, _WITH_TAGS_WORDS = 30, 20
# A long episode says things more than once: the longer it is, the denser it can be.
_USUAL_WORDS, _USUAL, _DENSEST, _GROWTH = 600, 3.2, 8.5, 0.35
_COLD_USUAL = 13.5


@dataclass(frozen=True)
class Budget:
    """Words: as few as possible, as many as wanted, as many as allowed."""

    least: int
    wanted: int
    most: int


def warm_budget(words_said: int) -> Budget:
    """Of everything that a warm episode keeps."""
    ratio = min(_DENSEST, _USUAL * max(1.0, words_said / _USUAL_WORDS) ** _GROWTH)
    return _within(words_said, ratio, WARM_LEAST, WARM_MOST)


def cold_budget(warm_words: int, words_said: int) -> Budget:
    """Of a headline with its tags."""
    if words_said >= SHORT_WORDS:
        return _within(warm_words, _COLD_USUAL, COLD_LEAST, COLD_MOST)
    return Budget(1, max(1, min(_WITH_TAGS_WORDS, warm_words - 1)), max(1, min(_ONE_SENTENCE_WORDS, warm_words)))


def _within(words: int, ratio: float, at_least: float, at_most: float) -> Budget:
    most = max(1, math.floor(words / at_least))
    least = min(most, max(1, math.ceil(words / at_most)))
    return Budget(least, min(most, max(least, round(words / ratio))), most)

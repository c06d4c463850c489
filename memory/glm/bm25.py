"""How well a text answers to the words of a question."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

# As is usual: how soon a word said again counts for no more, how much a long text is held against it.
_SATURATION = 1.2
_LENGTH = 0.75


class WordHit(NamedTuple):
    """The share of what the words asked for weigh that is there, from 0 to 1, with these words."""

    score: float
    words: tuple[str, ...]


def word_hits(
    asked: Mapping[str, str], texts: Mapping[str, str], total: int, counts: Mapping[str, int]
) -> dict[str, WordHit]:
    """BM25 as a share of the most there could be: of a question of which only small words are found, little is left.

    `asked` are stems with their words, `texts` those to be judged, of `total` texts; `counts` is how many have a stem.
    """
    counted = {key: Counter(text.split()) for key, text in texts.items()}
    lengths = {key: each.total() for key, each in counted.items()}
    mean = sum(lengths.values()) / max(len(lengths), 1)
    weights = {stem: rarity(counts.get(stem, 0), total) for stem in asked}
    most = sum(weights.values())
    hits: dict[str, WordHit] = {}
    for key, each in counted.items():
        burden = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[key] / mean)
        found = [stem for stem in asked if stem in each]
        score = sum(weights[stem] * each[stem] / (each[stem] + burden) for stem in found) / most
        hits[key] = WordHit(score, tuple(dict.fromkeys(asked[stem] for stem in found)))
    return hits


def rarity(having: int, total: int) -> float:
    """What a word weighs that so many of so many texts have."""
    return math.log(1 + max(total - having + 0.5, 0) / (having + 0.5))

"""Nearness of meaning beside nearness of words."""

import math
from collections.abc import Mapping
from statistics import fmean, pstdev

# Fitted to tests/data/questions.json; what they are worth elsewhere, a look at `explain` tells.
WORDS = 10.0
MEANING = 0.8
_MIDDLE = 4.0
_SAME = 1e-6


def fused(words: Mapping[str, float], meaning: Mapping[str, float]) -> dict[str, float]:
    """A score from 0 to 1 for each unit, of the share of words that it has, of how far its cosine stands out.

    Cosines of one model lie close together, those of another far apart, so that only their spread tells what is near.
    A unit without a vector is as near in meaning as the average.
    """
    outstanding = _standing_out(meaning)
    return {
        key: _squeezed(WORDS * words.get(key, 0.0) + MEANING * outstanding.get(key, 0.0))
        for key in words.keys() | meaning.keys()
    }


def by_score(scores: Mapping[str, float]) -> list[str]:
    """The best first, in one order whenever it is asked for."""
    return sorted(scores, key=lambda key: (-scores[key], key))


def _standing_out(meaning: Mapping[str, float]) -> dict[str, float]:
    if not meaning:
        return {}
    mean, spread = fmean(meaning.values()), max(pstdev(meaning.values()), _SAME)
    return {key: (cosine - mean) / spread for key, cosine in meaning.items()}


def _squeezed(evidence: float) -> float:
    return 1 / (1 + math.exp(_MIDDLE - evidence))

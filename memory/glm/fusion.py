"""Nearness of meaning beside nearness of words."""

import math
from collections.abc import Mapping
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

# Fitted to the questions in tests/data; what each is worth, `explain` tells.
WORDS = 4.0
MEANING = 0.8
_MIDDLE = 2.0
# How much of what all candidates have in common is taken away from each.
_COMMON = 0.8
_SAME = 1e-6


def nearness(question: bytes, vectors: Mapping[str, bytes]) -> dict[str, float]:
    """Cosines of what distinguishes the candidates.

    All vectors of a model lie near each other; what the candidates share would have a text of no subject win.
    """
    if not vectors:
        return {}
    directions = _directions(b"".join(vectors.values()), len(vectors))
    common = _COMMON * directions.mean(axis=0)
    wanted = _unit(_directions(question, 1) - common)[0]
    return dict(zip(vectors, (_unit(directions - common) @ wanted).tolist(), strict=True))


def fused(words: Mapping[str, float], meaning: Mapping[str, float]) -> dict[str, float]:
    """A score from 0 to 1 for each unit, of the share of words that it has, of how far its nearness stands out.

    Only the spread tells what is near, since it is another with each model. A unit without a vector is as near in
    meaning as the average.
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


def _directions(raw: bytes, count: int) -> NDArray[np.float64]:
    return _unit(np.frombuffer(raw, dtype="<f4").reshape(count, -1).astype(np.float64))


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), _SAME)
    return np.asarray(rows / lengths)

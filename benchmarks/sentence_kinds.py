"""Train the classifiers of `agents.sentence_kinds` on the sentences in agents/data, and tell how well they generalise.

    python -m benchmarks.sentence_kinds

Logistic regression over sentence vectors with classes of equal weight; prints the accuracy in five-fold
cross-validation, then writes agents/data/sentence_kinds.npz. Takes about a minute.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.sentence_kinds import WEIGHTS, softmax
from retrieval.embedding.e5 import e5_model

DATA = Path(__file__).parents[1] / "agents" / "data"
# What each classifier tells apart: the sentences of every other kind are its last class.
HEADS = {"work": ("task", "fact", "other"), "mood": ("glad", "upset", "other")}
_FOLDS = 5
_DECAY, _STEPS, _RATE, _MOMENTUM = 0.01, 600, 0.1, 0.9

Matrix = NDArray[np.float64]


def read_sentences() -> list[tuple[str, str]]:
    """The sentences with their kinds, those of both languages."""
    return [
        (line, file.name.split(".")[0])
        for file in sorted((DATA / "sentences").glob("*.txt"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if line
    ]


def digest_of(sentences: Sequence[tuple[str, str]]) -> str:
    """Digest of the sentences, which stands in the file of weights."""
    return hashlib.sha256("\n".join(f"{kind}\t{text}" for text, kind in sentences).encode()).hexdigest()


def fit(vectors: Matrix, classes: Matrix) -> tuple[Matrix, Matrix]:
    """Weights, shape (dim, classes), and bias of the logistic regression of `classes`, one-hot rows."""
    centre, spread = vectors.mean(axis=0), vectors.std()
    rows = (vectors - centre) / spread
    share = 1 / classes.sum(axis=0)[classes.argmax(axis=1)]
    share /= share.sum()
    weights, bias = np.zeros((rows.shape[1], classes.shape[1])), np.zeros(classes.shape[1])
    pull_weights, pull_bias = np.zeros_like(weights), np.zeros_like(bias)
    for _ in range(_STEPS):
        error = (softmax(rows @ weights + bias) - classes) * share[:, None]
        pull_weights = _MOMENTUM * pull_weights - _RATE * (rows.T @ error + _DECAY * weights)
        pull_bias = _MOMENTUM * pull_bias - _RATE * error.sum(axis=0)
        weights, bias = weights + pull_weights, bias + pull_bias
    return weights / spread, bias - centre @ weights / spread


def cross_validate(vectors: Matrix, classes: Matrix) -> float:
    """Share of sentences classified rightly by a model that has not seen them."""
    order = np.random.default_rng(0).permutation(len(vectors))
    right = 0
    for fold in range(_FOLDS):
        unseen = order[fold::_FOLDS]
        seen = np.setdiff1d(order, unseen)
        weights, bias = fit(vectors[seen], classes[seen])
        right += int(((vectors[unseen] @ weights + bias).argmax(axis=1) == classes[unseen].argmax(axis=1)).sum())
    return right / len(vectors)


def main() -> None:
    sentences = read_sentences()
    model = e5_model()
    vectors = np.array([model.query(text).ravel() for text, _ in sentences], dtype=np.float64)
    arrays: dict[str, NDArray[np.generic]] = {"digest": np.array(digest_of(sentences))}
    for head, kinds in HEADS.items():
        of = [kinds.index(kind) if kind in kinds else len(kinds) - 1 for _, kind in sentences]
        classes = np.eye(len(kinds))[of]
        print(f"{head}: {cross_validate(vectors, classes):.3f} of {len(sentences)} sentences right when not seen")
        weights, bias = fit(vectors, classes)
        arrays |= {f"{head}_kinds": np.array(kinds), f"{head}_weights": weights, f"{head}_bias": bias}
    with (DATA / WEIGHTS).open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()

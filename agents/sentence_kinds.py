"""Kinds of sentences by a small model: kernel classifiers over multilingual-e5-small.

Trained on `agents/data/sentences`. Rules see what their authors thought of; the model hears what a sentence is like.
`python -m benchmarks.sentence_kinds` trains it anew.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.fragments import message_sentences
from bus_schema.dialogue import DialogueMessage
from retrieval.embedding.e5 import E5Model, e5_model

KINDS = ("task", "fact", "glad", "upset", "other")
WEIGHTS = "sentence_kinds.npz"
# Longer sentences say several things; the model was trained on short ones.
_MOST_CHARS = 400
_KEPT = 4096


@dataclass(frozen=True)
class SentenceKind:
    """Probabilities that a sentence gives work or takes it on, states what holds, and shows joy or distress."""

    task: float
    fact: float
    glad: float
    upset: float


# Probability from which a sentence that fits no grammar of ours is taken for a task, or a fact: 2 and 4 % of other
# sentences are, in cross-validation, and 78 and 76 % of those.
LIKELY_TASK, LIKELY_FACT = 0.5, 0.4


@lru_cache(maxsize=_KEPT)
def sentence_kind(sentence: str) -> SentenceKind:
    """The kind of a sentence, in about 5 ms of CPU, the last 4,096 at once; raises EmbedderMissing."""
    similar = _similar(_model().query(sentence[:_MOST_CHARS]))
    work, mood = _probabilities(similar, "work"), _probabilities(similar, "mood")
    return SentenceKind(task=work["task"], fact=work["fact"], glad=mood["glad"], upset=mood["upset"])


def may_state(message: DialogueMessage) -> bool:
    """Whether a sentence of a message has half the probability at which it is taken for a fact, and more than of work.

    A small language model takes nearly every message for a fact: its reading counts where this does not speak against.
    """
    return any(kind.fact >= max(LIKELY_FACT / 2, kind.task) for kind in _kinds(message))


def may_give_work(message: DialogueMessage) -> bool:
    """Whether a sentence of a message has a fifth of the probability at which it is taken for a task by itself.

    Of 56 messages of others with a task 55 have, and a seventh of those without one.
    """
    return any(kind.task >= LIKELY_TASK / 5 for kind in _kinds(message))


def _kinds(message: DialogueMessage) -> list[SentenceKind]:
    return [sentence_kind(sentence.text) for sentence in message_sentences(message.content or "")]


async def prepare_kinds(messages: Iterable[DialogueMessage]) -> None:
    """Read the sentences of messages off the event loop, so that `sentence_kind` has them at once."""
    texts = [sentence.text for message in messages for sentence in message_sentences(message.content or "")]
    await asyncio.to_thread(lambda: [sentence_kind(text) for text in texts])


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities by row, shape as given."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def kernel(vectors: NDArray[Any], anchors: NDArray[Any]) -> NDArray[Any]:
    """Similarity of unit vectors with anchors, shape (vectors, anchors): a Gaussian over their distance, 1 at none."""
    similar: NDArray[Any] = np.exp(vectors @ anchors.T - 1)
    return similar


def _probabilities(similar: NDArray[Any], head: str) -> Mapping[str, float]:
    weights = _weights()
    shares = softmax(similar @ weights[f"{head}_weights"] + weights[f"{head}_bias"])
    return dict(zip(weights[f"{head}_kinds"].tolist(), shares.tolist(), strict=True))


def _similar(vector: NDArray[np.float32]) -> NDArray[Any]:
    """Similarity of a sentence with those that the model was trained on."""
    weights = _weights()
    away = vector.ravel() - weights["centre"]
    return kernel(away / np.linalg.norm(away), weights["anchors"])


@cache
def _weights() -> Mapping[str, NDArray[Any]]:
    with (resources.files("agents") / "data" / WEIGHTS).open("rb") as file, np.load(file) as arrays:
        found: dict[str, NDArray[Any]] = dict(arrays)
    return found | {"anchors": found["anchors"].astype(np.float32)}


@cache
def _model() -> E5Model:
    return e5_model()

"""A hundred thousand units of memory, made up as years of work would leave them, with questions about them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bus_schema.embeddings import Embedding
from bus_schema.kem import KemDraft
from bus_schema.kem_query import KemQuery
from retrieval.embedding.e5 import MODEL
from retrieval.embedding.embedder import EmbeddingSpace

SPACE = EmbeddingSpace(MODEL, 384)
BATCH = 500
OWNERS = ("agent.researcher", "agent.critic", "agent.editor", "user.anna")
PROJECTS = 50
KINDS = ("fact", "decision", "summary", "preference", "document")
YEARS = tuple(range(2017, 2027))
# A question about one of the commonest words, one of the rarest.
COMMON, RARE = 0, 25_000

_SEED = 20261122
_TOPICS = 500
_VOCABULARY = 30_000
_WORDS = 40
# Zipf's law, less steep at its head: the commonest word is in four texts of five.
_HEAD = 2.7
_SYLLABLES = (
    tuple(a + b for a in "bdfgklmnprstvz" for b in "aeiou"),
    tuple(a + b for a in "бвгдзклмнпрстф" for b in "аеиоу"),
)


@dataclass(frozen=True)
class Question:
    """What somebody looks for; `is_measured` where a bar has been set for it."""

    name: str
    wanted: dict[str, Any]
    is_measured: bool = True

    def asked(self, vector: Embedding) -> KemQuery:
        return KemQuery.model_validate(self.wanted | {"embedding_query": vector})


def batches(count: int) -> Iterator[tuple[str, tuple[KemDraft, ...]]]:
    """Each with its owner; the same ones every time."""
    chance = np.random.default_rng(_SEED)
    topics = chance.normal(size=(_TOPICS, SPACE.dim)).astype(np.float32)
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        vectors = _vectors(chance, topics[chance.integers(_TOPICS, size=size)])
        texts = _texts(chance, size)
        owner = OWNERS[first // BATCH % len(OWNERS)]
        yield owner, tuple(_draft(first + n, texts[n], vectors[n]) for n in range(size))


def asked_vectors(count: int) -> list[Embedding]:
    """Near to a topic each, as questions are."""
    chance = np.random.default_rng(_SEED)
    topics = chance.normal(size=(_TOPICS, SPACE.dim)).astype(np.float32)
    later = np.random.default_rng(_SEED + 1)
    rows = _vectors(later, topics[later.integers(_TOPICS, size=count)])
    return [Embedding.of(SPACE.model, row.tolist()) for row in rows]


def questions(middle: datetime) -> list[Question]:
    """From few to all; `middle` is when half of the units were there."""
    kind: dict[str, Any] = {"kind": "decision"}
    filters: dict[str, dict[str, Any]] = {
        "project (2 %)": {"project": "project_7"},
        "kind, since 2024 (6 %)": {"AND": [kind, {"year": {"gte": 2024}}]},
        "kind (20 %)": kind,
        "kind or project (22 %)": {"OR": [kind, {"project": "project_7"}]},
        "not this kind (80 %)": {"NOT": kind},
    }
    found = [Question(name, {"metadata_filters": wanted}) for name, wanted in filters.items()]
    found.append(Question("stored after (50 %)", {"created_at_start": middle}))
    found.append(Question("rights alone (92 %)", {}))
    words = {"common words": (COMMON, COMMON + 1, COMMON + 2), "rare words": (RARE, RARE + 1), "both": (COMMON, RARE)}
    found += [
        Question(f"text: {name}", {"text_query": " ".join(_vocabulary()[rank] for rank in ranks)}, is_measured=False)
        for name, ranks in words.items()
    ]
    return found


def _draft(number: int, text: str, vector: NDArray[np.float32]) -> KemDraft:
    metadata = {
        "project": f"project_{number % PROJECTS}",
        # Of another rhythm each, so that every project has every kind.
        "kind": KINDS[number // 7 % len(KINDS)],
        "year": YEARS[number // 11 % len(YEARS)],
        "tags": [f"tag_{number % 97}", f"tag_{number % 89}"],
    }
    return KemDraft(
        id=f"kem_{number:032x}",
        content=text,
        metadata=metadata,
        embeddings=Embedding.of(SPACE.model, vector.tolist()),
        visibility="private" if number % 10 == 3 else "public",
    )


def _vectors(chance: np.random.Generator, topics: NDArray[np.float32]) -> NDArray[np.float32]:
    """In the narrow cone in which those of a real model lie."""
    rows = 3.0 + topics + 0.7 * chance.normal(size=topics.shape)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _texts(chance: np.random.Generator, count: int) -> list[str]:
    words = _vocabulary()
    ranks = np.searchsorted(_cumulated(), chance.random((count, _WORDS)))
    return [" ".join(words[rank] for rank in row) for row in ranks.tolist()]


@cache
def _cumulated() -> NDArray[np.float64]:
    weights = np.cumsum(1 / (np.arange(_VOCABULARY) + _HEAD))
    return np.asarray(weights / weights[-1])


@cache
def _vocabulary() -> list[str]:
    """Every other word in Cyrillic; words are long enough to be no other's stem."""
    chance = np.random.default_rng(_SEED)
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        syllables = _SYLLABLES[len(words) % 2]
        words["".join(syllables[each] for each in chance.integers(len(syllables), size=4))] = None
    return list(words)

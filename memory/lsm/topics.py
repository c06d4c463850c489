"""Topics of episodes: terms, names and mean vector of their turns, and how similar they are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import RawTurn
from language.words import stem_key
from memory.lsm.rows import as_turn, turns_of
from memory.lsm.tables import TurnRow, TurnVectorRow
from memory.packing.entities import entities_of
from memory.packing.sentences import meaningful_stems
from retrieval.similarity import as_floats

_TERM_WEIGHT, _NAME_WEIGHT, _MEANING_WEIGHT = 0.4, 0.3, 0.3
_NAMING = frozenset({"person", "place", "organization", "thing"})
# Among fewer topics, common terms cannot be told from specific ones.
_MIN_TOPICS = 4

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Topic:
    """Stems of meaningful words, stems of names, mean vector where every turn has one."""

    terms: frozenset[str]
    names: frozenset[str]
    direction: Vector | None = None

    @classmethod
    def of(cls, turns: Sequence[RawTurn], vectors: Mapping[str, bytes]) -> Self:
        """Topic of some turns; slow for many of them."""
        terms = frozenset(term for turn in turns for term in meaningful_stems(turn.content))
        names = frozenset(stem_key(each.name) for each in entities_of(turns) if each.kind in _NAMING)
        known = [as_floats(vectors[turn.raw_log_id]) for turn in turns if turn.raw_log_id in vectors]
        direction = np.mean(known, axis=0) if known and len(known) == len(turns) else None
        return cls(terms, names, direction)


class TopicSimilarity:
    """Similarity of topics without what most of the given ones have in common."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        known = list(topics)
        is_enough = len(known) >= _MIN_TOPICS
        self._common_terms = _common((each.terms for each in known), len(known)) if is_enough else frozenset()
        self._common_names = _common((each.names for each in known), len(known)) if is_enough else frozenset()
        directions = [each.direction for each in known if each.direction is not None]
        self._mean_direction = np.mean(directions, axis=0) if len(directions) >= _MIN_TOPICS else None

    def of(self, one: Topic, other: Topic) -> float:
        """Weighted mean of term overlap, name overlap and cosine, 0 to 1; signals that either lacks are left out."""
        signals = [
            (_TERM_WEIGHT, _overlap(one.terms - self._common_terms, other.terms - self._common_terms)),
            (_NAME_WEIGHT, _overlap(one.names - self._common_names, other.names - self._common_names)),
            (_MEANING_WEIGHT, self._cosine(one, other)),
        ]
        known = [(weight, value) for weight, value in signals if value is not None]
        total = sum(weight for weight, _ in known)
        return sum(weight * value for weight, value in known) / total if total else 0.0

    def _cosine(self, one: Topic, other: Topic) -> float | None:
        if one.direction is None or other.direction is None or self._mean_direction is None:
            return None
        if one.direction.shape != other.direction.shape or one.direction.shape != self._mean_direction.shape:
            return None
        first, second = one.direction - self._mean_direction, other.direction - self._mean_direction
        length = float(np.linalg.norm(first) * np.linalg.norm(second))
        return max(0.0, float(first @ second) / length) if length else None


@dataclass(frozen=True, slots=True)
class EpisodeText:
    """Turns of an episode in their order, with the vectors there are by turn id."""

    turns: Sequence[TurnRow]
    vectors: Mapping[str, bytes]

    @property
    def has_vectors(self) -> bool:
        """Whether every turn with text has a vector."""
        return bool(self.vectors) and len(self.vectors) == sum(bool(turn.content) for turn in self.turns)

    def topic(self, begin: int = 0, end: int | None = None) -> Topic:
        """Topic of the turns from `begin` to `end`."""
        return Topic.of([as_turn(turn) for turn in self.turns[begin:end]], self.vectors)


async def episode_text(session: AsyncSession, episode_id: str) -> EpisodeText:
    """Text of an episode."""
    turns = await turns_of(session, episode_id)
    query = select(TurnVectorRow).where(TurnVectorRow.raw_log_id.in_([turn.id for turn in turns]))
    return EpisodeText(turns, {row.raw_log_id: row.data for row in await session.scalars(query)})


async def mean_vector(session: AsyncSession, text: EpisodeText) -> tuple[str | None, bytes | None]:
    """Model of a text's vectors and their mean, normalised, little-endian float32; nothing if the mean is 0."""
    query = select(TurnVectorRow.model).where(TurnVectorRow.raw_log_id == next(iter(text.vectors)))
    model = await session.scalar(query)
    mean = np.mean([as_floats(raw) for raw in text.vectors.values()], axis=0)
    length = float(np.linalg.norm(mean))
    return (model, (mean / length).astype("<f4").tobytes()) if length else (None, None)


def _overlap(one: frozenset[str], other: frozenset[str]) -> float | None:
    return len(one & other) / min(len(one), len(other)) if one and other else None


def _common(sets: Iterable[frozenset[str]], total: int) -> frozenset[str]:
    counts: Counter[Any] = Counter(each for known in sets for each in known)
    return frozenset(each for each, count in counts.items() if count > total / 2)

"""Topics of episodes: terms, names and mean vector of their turns, their similarity, and boundaries between them."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import Note, RawTurn
from language.words import small_talk_stems, stem_key
from memory.lsm.rows import as_turn, turns_of
from memory.lsm.tables import TurnRow, TurnVectorRow
from memory.packing.cold import topics_of
from memory.packing.entities import entities_of
from memory.packing.notes import notes_of
from memory.packing.sentences import meaningful_stems
from retrieval.similarity import EPSILON, as_floats, normalized

_TERM_WEIGHT, _NAME_WEIGHT, _MEANING_WEIGHT = 0.4, 0.3, 0.3
_NAMES_AS_TAGS, _TOPICS_AS_TAGS = 4, 4
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
        names = frozenset(stem_key(entity.name) for entity in entities_of(turns) if entity.kind in _NAMING)
        embeddings = [as_floats(vectors[turn.raw_log_id]) for turn in turns if turn.raw_log_id in vectors]
        direction = np.mean(embeddings, axis=0) if embeddings and len(embeddings) == len(turns) else None
        return cls(terms, names, direction)


class TopicSimilarity:
    """Similarity of topics without what most of the given ones have in common."""

    def __init__(self, topics: Collection[Topic]) -> None:
        is_enough = len(topics) >= _MIN_TOPICS
        self._common_terms = _common((topic.terms for topic in topics), len(topics)) if is_enough else frozenset()
        self._common_names = _common((topic.names for topic in topics), len(topics)) if is_enough else frozenset()
        directions = [topic.direction for topic in topics if topic.direction is not None]
        self._mean_direction = np.mean(directions, axis=0) if len(directions) >= _MIN_TOPICS else None

    def of(self, one: Topic, other: Topic) -> float:
        """Weighted mean of term overlap, name overlap and cosine, 0 to 1; signals that either lacks are left out."""
        signals = [
            (_TERM_WEIGHT, _overlap(one.terms - self._common_terms, other.terms - self._common_terms)),
            (_NAME_WEIGHT, _overlap(one.names - self._common_names, other.names - self._common_names)),
            (_MEANING_WEIGHT, self._cosine(one, other)),
        ]
        available = [(weight, value) for weight, value in signals if value is not None]
        total = sum(weight for weight, _ in available)
        return sum(weight * value for weight, value in available) / total if total else 0.0

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
        return Topic.of([as_turn(turn) for turn in self.turns[begin:end]], self.vectors)

    def notes(self) -> tuple[Note, ...]:
        """Notes by rules; slow for many turns."""
        return notes_of([as_turn(turn) for turn in self.turns])

    def tags(self) -> list[str]:
        """Names and topics that recur, until a pack has tags of its own; slow for many turns."""
        turns = [as_turn(turn) for turn in self.turns]
        names = [entity.name for entity in entities_of(turns) if entity.kind in _NAMING]
        recurring = topics_of([turn.content for turn in turns], 2)
        return list(dict.fromkeys([*names[:_NAMES_AS_TAGS], *recurring[:_TOPICS_AS_TAGS]]))


def nearest(direction: Vector, known: Sequence[Any], most: int) -> list[str]:
    """Ids of the rows whose `embedding`, of as many dimensions, has the highest cosines with a direction."""
    vectors = {row.id: as_floats(row.embedding) for row in known}
    cosines = {each: float(vector @ direction) for each, vector in vectors.items() if vector.shape == direction.shape}
    return sorted(cosines, key=cosines.__getitem__, reverse=True)[:most]


async def episode_text(session: AsyncSession, episode_id: str) -> EpisodeText:
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
    counts: Counter[Any] = Counter(member for members in sets for member in members)
    return frozenset(member for member, count in counts.items() if count > total / 2)


# Turns compared on each side of a boundary; the fewest turns of a topic.
_WINDOW, _MIN_TURNS = 8, 6
# Least distance of two topics relative to their spread, to which shared words are a penalty: a topic that drifts stays
# nearer, the more so if words recur.
_MIN_DISTANCE, _SHARED_WORD_PENALTY = 0.13, 9.0
_SMALL_TALK_WEIGHT = 0.3
# Without vectors: the least share of turns with a word of another turn on their side, the overlap that is chance.
_MIN_COHERENCE, _CHANCE_OVERLAP = 0.6, 0.06

Rows = NDArray[np.float32]


def topic_boundary(text: EpisodeText) -> int | None:
    """Index of the first turn of another topic, by vectors or, where some are missing, by words; None without one."""
    nonempty = [index for index, turn in enumerate(text.turns) if turn.content]
    dialogue = _Dialogue([text.turns[index] for index in nonempty])
    rows = _directions(text, nonempty) if text.has_vectors else None
    boundary = dialogue.boundary_by_words() if rows is None else dialogue.boundary_by_vectors(rows)
    return None if boundary is None else nonempty[boundary]


class _Dialogue:
    """Turns with text. An assistant answers, so that it opens no topic."""

    def __init__(self, turns: Sequence[TurnRow]) -> None:
        speakers = {key for turn in turns for key in stem_key(turn.speaker or "").split()}
        self._terms = [meaningful_stems(turn.content) - speakers for turn in turns]
        candidates = range(_MIN_TURNS, len(turns) - _MIN_TURNS + 1)
        self._candidates = [index for index in candidates if turns[index].role != "assistant"]

    def boundary_by_vectors(self, rows: Rows) -> int | None:
        """Index where the windows before and after are furthest from each other, if they are far enough."""
        scores = {
            index: _distance(rows, index) - _SHARED_WORD_PENALTY * self._recurrence(index) for index in self._candidates
        }
        best = max(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] >= _MIN_DISTANCE else None

    def boundary_by_words(self) -> int | None:
        """Index across which hardly a word recurs, though each side is coherent."""
        scores = {index: self._overlap(index) for index in self._candidates if self._is_sharp(index)}
        best = min(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] < _CHANCE_OVERLAP else None

    def _recurrence(self, index: int) -> float:
        """Mean overlap of a turn before and one after; rare words weigh more."""
        before, after = self._terms[max(0, index - _WINDOW) : index], self._terms[index : index + _WINDOW]
        overlaps = [self._shared_weight(one, other) for one in before for other in after]
        return math.fsum(overlaps) / len(overlaps)

    def _shared_weight(self, one: frozenset[str], other: frozenset[str]) -> float:
        weights = (
            (_SMALL_TALK_WEIGHT if term in small_talk_stems() else 1.0) / (self._frequencies[term] - 1)
            for term in one & other
        )
        return math.fsum(weights) / math.sqrt(max(1, len(one)) * max(1, len(other)))

    def _overlap(self, index: int) -> float:
        before = frozenset().union(*self._specific_terms[:index])
        after = frozenset().union(*self._specific_terms[index:])
        return len(before & after) / max(1, min(len(before), len(after)))

    def _is_sharp(self, index: int) -> bool:
        terms = self._specific_terms
        before, after = terms[max(0, index - _WINDOW) : index], terms[index : index + _WINDOW]
        if frozenset().union(*before) & frozenset().union(*after):
            return False
        return min(_coherence(before), _coherence(after)) >= _MIN_COHERENCE

    @cached_property
    def _frequencies(self) -> Counter[str]:
        return Counter(term for terms in self._terms for term in terms)

    @cached_property
    def _specific_terms(self) -> list[frozenset[str]]:
        return [terms - small_talk_stems() for terms in self._terms]


def _directions(text: EpisodeText, nonempty: Sequence[int]) -> Rows | None:
    """Unit vectors of the turns, shape (turns, dims); None where they are of several models."""
    rows = [as_floats(text.vectors[text.turns[index].id]) for index in nonempty]
    return normalized(np.stack(rows)) if len({len(row) for row in rows}) == 1 else None


def _distance(rows: Rows, index: int) -> float:
    """Squared distance of the two windows' means less its expectation by chance, in units of their spread."""
    before, after = rows[max(0, index - _WINDOW) : index], rows[index : index + _WINDOW]
    distance = float(((before.mean(axis=0) - after.mean(axis=0)) ** 2).sum())
    spread_before, spread_after = _spread(before), _spread(after)
    spread = (spread_before + spread_after) / 2
    return (distance - spread_before / len(before) - spread_after / len(after)) / max(spread, EPSILON)


def _spread(rows: Rows) -> float:
    return float(((rows - rows.mean(axis=0)) ** 2).sum()) / (len(rows) - 1)


def _coherence(terms: Sequence[frozenset[str]]) -> float:
    """Share of turns that have a word of another one."""
    frequencies = Counter(term for sentence in terms for term in sentence)
    return sum(any(frequencies[term] > 1 for term in sentence) for sentence in terms) / len(terms)

"""What stretches of a dialogue are about, how much alike that is."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bus_schema.episodes import RawTurn
from language.words import stem_key
from memory.packing.entities import entities_of
from memory.packing.reading import meant

_TERMS, _NAMES, _MEANING = 0.4, 0.3, 0.3
_NAMING = frozenset({"person", "place", "organization", "thing"})
# Of fewer stretches nobody can tell what is usual among them.
_FEW = 4

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Matter:
    """The stems that carry meaning, the names, the mean direction of the turns where they have vectors."""

    terms: frozenset[str]
    names: frozenset[str]
    direction: Vector | None = None

    @classmethod
    def of(cls, turns: Sequence[RawTurn], vectors: Mapping[str, bytes]) -> Self:
        """Of long stretches it takes its time."""
        terms = frozenset(term for turn in turns for term in meant(turn.content))
        names = frozenset(stem_key(each.name) for each in entities_of(turns) if each.kind in _NAMING)
        known = [np.frombuffer(vectors[turn.raw_log_id], "<f4") for turn in turns if turn.raw_log_id in vectors]
        direction = np.mean(known, axis=0) if known and len(known) == len(turns) else None
        return cls(terms, names, direction)


class Likeness:
    """Compares matters as far as they differ from what is usual: what most of them have tells nothing."""

    def __init__(self, matters: Iterable[Matter]) -> None:
        known = list(matters)
        is_enough = len(known) >= _FEW
        self._usual_terms = _common((each.terms for each in known), len(known)) if is_enough else frozenset()
        self._usual_names = _common((each.names for each in known), len(known)) if is_enough else frozenset()
        directions = [each.direction for each in known if each.direction is not None]
        self._usual_direction = np.mean(directions, axis=0) if len(directions) >= _FEW else None

    def of(self, one: Matter, other: Matter) -> float:
        """0 to 1; a signal that either of them lacks does not count."""
        weighed = [
            (_TERMS, _overlap(one.terms - self._usual_terms, other.terms - self._usual_terms)),
            (_NAMES, _overlap(one.names - self._usual_names, other.names - self._usual_names)),
            (_MEANING, self._meaning(one, other)),
        ]
        known = [(weight, value) for weight, value in weighed if value is not None]
        total = sum(weight for weight, _ in known)
        return sum(weight * value for weight, value in known) / total if total else 0.0

    def _meaning(self, one: Matter, other: Matter) -> float | None:
        if one.direction is None or other.direction is None or self._usual_direction is None:
            return None
        if one.direction.shape != other.direction.shape or one.direction.shape != self._usual_direction.shape:
            return None
        first, second = one.direction - self._usual_direction, other.direction - self._usual_direction
        length = float(np.linalg.norm(first) * np.linalg.norm(second))
        return max(0.0, float(first @ second) / length) if length else None


def _overlap(one: frozenset[str], other: frozenset[str]) -> float | None:
    return len(one & other) / min(len(one), len(other)) if one and other else None


def _common(sets: Iterable[frozenset[str]], total: int) -> frozenset[str]:
    counted: Counter[Any] = Counter(each for known in sets for each in known)
    return frozenset(each for each, count in counted.items() if count > total / 2)

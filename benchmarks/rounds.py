"""Rounds of a benchmark: in which order whoever is compared has its turn, how far the rounds lie apart."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeVar

T = TypeVar("T")


def in_turn(contestants: Iterable[T], number: int) -> list[T]:
    """In their order in every even round, the other way round in every odd one, so that nobody is always first."""
    found = list(contestants)
    return found[::-1] if number % 2 else found


def middle(values: Iterable[float], digits: int) -> float:
    """Median of the rounds."""
    return round(median(values), digits)


def span(values: Iterable[float], digits: int) -> list[float]:
    """The lowest and the highest round."""
    found: Sequence[float] = list(values)
    return [round(min(found), digits), round(max(found), digits)]


def shown_span(values: Sequence[float]) -> str:
    """A span for people, behind the median."""
    return f"({values[0]:g}-{values[1]:g})"

"""Which passages a text of limited length should carry."""

from collections.abc import Iterable, Sequence

from agents.models.extractive.source import Passage, Source

DEFAULT_LENGTH_WORDS = 900
MOST_THEMES = 9
_SHORT_SOURCE_WORDS = 220
# A draft leaves something for the critic to insist on.
_SHARE = 0.75
_ALIKE = 0.75


def weightiest_themes(source: Source, limit: int = MOST_THEMES) -> list[int]:
    """The themes with the most to say, in the order of the source."""
    mass = {theme: sum(passage.weight for passage in source.of_theme(theme)) for theme in range(len(source.themes))}
    best = sorted(mass, key=lambda theme: (-mass[theme], theme))[:limit]
    return sorted(best)


def select(source: Source, themes: Sequence[int], length_words: int) -> set[int]:
    """The places of the passages to carry: the best of each theme first, then the best of all."""
    candidates = [passage for theme in themes for passage in source.of_theme(theme) if not passage.introduces]
    total = sum(passage.length_words for passage in candidates)
    limit = length_words if total <= _SHORT_SOURCE_WORDS else min(length_words, int(total * _SHARE))
    chosen = _Chosen(source, limit)
    for theme in themes:
        first = max(
            (passage for passage in candidates if passage.theme == theme),
            key=lambda passage: (passage.weight, -passage.place),
            default=None,
        )
        if first:
            chosen.take(first)
    for passage in sorted(candidates, key=lambda passage: (-passage.weight, passage.place)):
        chosen.take(passage)
    return chosen.places


def without_repeats(passages: Iterable[Passage]) -> list[Passage]:
    """Leave out what says almost the same as something before it."""
    kept: list[Passage] = []
    for passage in passages:
        if not any(alike(passage.terms, other.terms) for other in kept):
            kept.append(passage)
    return kept


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    return shorter > 2 and shorter >= _ALIKE * longer and len(one & other) >= _ALIKE * len(one | other)


class _Chosen:
    def __init__(self, source: Source, limit_words: int) -> None:
        self.places: set[int] = set()
        self._source = source
        self._left_words = limit_words

    def take(self, passage: Passage) -> None:
        new = [each for each in self._source.with_support(passage) if each.place not in self.places]
        cost = sum(each.length_words for each in new)
        is_bulky = any(each.is_bulky for each in new)
        if new and cost <= self._left_words and not is_bulky and not self._is_said(passage):
            self.places.update(each.place for each in new)
            self._left_words -= cost

    def _is_said(self, passage: Passage) -> bool:
        return any(alike(passage.terms, self._source.passages[place].terms) for place in self.places)

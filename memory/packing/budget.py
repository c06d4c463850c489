"""Word counts of layers, and the budgets that compression leaves them (spec 002 NF4)."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bus_schema.episodes import ColdContent, Content, HotContent, RawTurn, WarmContent

# Compression by spec 002 NF4: hot to warm 3-10 times, warm to cold 10-20 times.
_WARM_MIN, _WARM_MAX = 3.0, 10.0
_COLD_MIN, _COLD_MAX = 10.0, 20.0
# The cold content of a shorter episode is one sentence, with tags while it is no longer than this.
_SHORT_WORDS = 400
_ONE_SENTENCE_WORDS, _WITH_TAGS_WORDS = 30, 20
# Long episodes are redundant: compression grows with the length to this power, from the usual to the highest ratio.
_USUAL_WORDS, _USUAL_RATIO, _MAX_RATIO, _GROWTH = 600, 3.2, 8.5, 0.35
_COLD_RATIO = 13.5


@dataclass(frozen=True)
class WordBudget:
    """Least, intended and greatest number of words."""

    least: int
    wanted: int
    most: int


def warm_budget(raw: int) -> WordBudget:
    """Budget of a warm pack for so many raw words."""
    ratio = min(_MAX_RATIO, _USUAL_RATIO * max(1.0, raw / _USUAL_WORDS) ** _GROWTH)
    return _budget(raw, ratio, _WARM_MIN, _WARM_MAX)


def cold_budget(warm: int, raw: int) -> WordBudget:
    """Budget of headline and tags for so many warm and raw words."""
    if raw >= _SHORT_WORDS:
        return _budget(warm, _COLD_RATIO, _COLD_MIN, _COLD_MAX)
    return WordBudget(1, max(1, min(_WITH_TAGS_WORDS, warm - 1)), max(1, min(_ONE_SENTENCE_WORDS, warm)))


def count_words(text: str) -> int:
    return len(text.split())


def raw_words(turns: Iterable[RawTurn]) -> int:
    """Number of words in the turns, without speakers and times."""
    return sum(count_words(turn.content) for turn in turns)


def content_words(content: Content) -> int:
    return sum(map(count_words, content_texts(content)))


def content_texts(content: Content) -> Iterator[str]:
    """All texts of a layer, without ids, kinds and vectors."""
    match content:
        case HotContent():
            yield from (turn.content for turn in content.raw_messages)
        case WarmContent():
            yield content.summary
            yield from content.key_points
            yield from (entity.name for entity in content.entities)
            yield from (decision.text for decision in content.decisions)
        case ColdContent():
            yield content.headline
            yield from content.tags


def _budget(words: int, ratio: float, min_ratio: float, max_ratio: float) -> WordBudget:
    max_words = max(1, math.floor(words / min_ratio))
    min_words = min(max_words, max(1, math.ceil(words / max_ratio)))
    return WordBudget(min_words, min(max_words, max(min_words, round(words / ratio))), max_words)

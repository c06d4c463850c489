"""Turns that were found, put together by episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from bus_schema.episodes import Layer
from bus_schema.lsm_search import FoundEpisode, ScoreParts, SearchEpisodes
from memory.lsm.rows import as_turn, packed
from memory.lsm.rules import Rules
from memory.lsm.search.choosing import fitting
from memory.lsm.search.depth import layer_text
from memory.lsm.search.hits import Hit

# Priority settles which of two equally good episodes comes first, no more.
_PRIORITY_SHARE = 0.1

# A turn with a row of what it says, in which episode.
Said = tuple[Hit, Any]


@dataclass(frozen=True, slots=True)
class _Group:
    """The turns of one episode, with what its priority adds to the best of them."""

    said: Sequence[Said]
    priority: float

    @property
    def row(self) -> Any:
        """The episode, on the row of any turn."""
        return self.said[0][1]

    @property
    def best(self) -> Hit:
        """The turn for which it was found."""
        return max((hit for hit, _ in self.said), key=lambda hit: hit.score)

    @property
    def score(self) -> float:
        """What the episode is worth."""
        return self.best.score + self.priority


def within(said: Sequence[Said], budget_words: int) -> list[Said]:
    """Those that fit, the first ones first."""
    words = np.array([row.word_count for _, row in said], dtype=np.uint32)
    return [said[place] for place in fitting(range(len(said)), words, budget_words)]


def grouped(
    said: Sequence[Said], query: SearchEpisodes, rules: Rules, at: datetime, *, is_summary: bool
) -> list[FoundEpisode]:
    """The best episode first, each with as much as there are words for; a summary says what the layer says."""
    left = query.budget_words
    found = []
    for group in sorted(_groups(said, rules, at), key=lambda group: -group.score):
        text = _text_of(group.row, query) if is_summary else None
        members = [] if text is not None else within(group.said, left)
        words = sum(row.word_count for _, row in members) + len((text or "").split())
        if words <= left and (members or text is not None):
            left -= words
            found.append(_episode(group, members, text, is_explained=query.explain))
    return found


def _groups(said: Sequence[Said], rules: Rules, at: datetime) -> list[_Group]:
    by_episode: dict[str, list[Said]] = {}
    for each in said:
        by_episode.setdefault(each[1].episode_id, []).append(each)
    return [_Group(turns, _PRIORITY_SHARE * rules.priority(turns[0][1], at)) for turns in by_episode.values()]


def _episode(group: _Group, members: Sequence[Said], text: str | None, *, is_explained: bool) -> FoundEpisode:
    row = group.row
    turns = sorted((turn for _, turn in members), key=lambda turn: (turn.time, turn.position))
    return FoundEpisode(
        episode_id=row.episode_id,
        layer=Layer(row.layer),
        headline=row.headline,
        started_at=row.started_at,
        turns=tuple(map(as_turn, turns)),
        text=text,
        score=group.score,
        explain=_reasons(group) if is_explained else None,
    )


def _reasons(group: _Group) -> ScoreParts:
    words = dict.fromkeys(word for hit, _ in group.said for word in hit.words)
    return ScoreParts(signals=dict(group.best.signals) | {"priority": group.priority}, words=tuple(words))


def _text_of(row: Any, query: SearchEpisodes) -> str | None:
    """What its layer says of it. A headline tells what an episode is about, not what it came to."""
    is_enough = row.layer == Layer.WARM or (row.layer == Layer.COLD and query.depth == "summary")
    return layer_text(packed(row)) if is_enough else None

"""Episodes that have something on a matter."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import load_only

from bus_schema.episodes import Layer
from bus_schema.lsm import FoundEpisode, FoundEpisodes, ScoreParts, SearchEpisodes
from memory.lsm.rows import as_turn, packed
from memory.lsm.rules import Rules
from memory.lsm.search.asked import Asked, asked
from memory.lsm.search.certainty import Confidence, confidence
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.choosing import OF_EACH_PART, fitting, woven
from memory.lsm.search.depth import is_overview, layer_text
from memory.lsm.search.question_vectors import QuestionVectors
from memory.lsm.search.ranking import Ranked, Worded, part_order, ranked, worded
from memory.lsm.search.shelf import Shelf
from memory.lsm.search.weights import Weights
from memory.lsm.tables import EpisodeOfTurnRow, EpisodeRow, TurnRow
from mindbus.sql.database import Database

_LOOKED_AT = (
    EpisodeRow.layer,
    EpisodeRow.headline,
    EpisodeRow.started_at,
    EpisodeRow.last_accessed,
    EpisodeRow.access_count,
    EpisodeRow.is_anchor,
)
# So many episodes count as used by whoever has searched; the rest came along.
_TOUCHED = 3
_EXACT_AT_MOST = 5
# A long turn may find no room where a shorter one behind it does.
_TRIED = 500
_EXACT_WORDS = 2
# Priority settles which of two equally good episodes comes first, no more.
_PRIORITY_SHARE = 0.1
# Summaries are short: so many turns tell which episodes are meant.
_TURNS_FOR_SUMMARY = 40


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn worth its words."""

    raw_log_id: str
    score: float
    signals: Mapping[str, float]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Answered:
    hits: Sequence[Hit]
    exact: Sequence[str]
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class Found:
    """What goes to the asker, plus what is kept of it."""

    answer: FoundEpisodes
    hits: Sequence[Mapping[str, str]]
    touched: Sequence[str]


class Finding:
    """Searches all layers at once: what is compressed is what is returned, never what is searched."""

    def __init__(self, database: Database, rules: Rules, shelf: Shelf, questions: QuestionVectors) -> None:
        self.database, self.rules = database, rules
        self.shelf, self.questions = shelf, questions

    async def find(self, query: SearchEpisodes, at: datetime, search_id: str, weights: Weights) -> Found:
        """Whatever layer an episode is in, its turns are compared. Raises DatabaseAway."""
        embedding = asyncio.ensure_future(self.questions.of(query.query))
        allowed = await self._allowed(query)
        async with self.shelf.index(query.chat_id, self.questions.model) as index:
            by_words = await asyncio.to_thread(_worded, index, query, at, allowed)
            vector = await embedding
            answered = await asyncio.to_thread(_answered, index, query, by_words, vector, weights)
        is_summary = query.depth == "summary" or (query.depth == "auto" and is_overview(query.query))
        gathered = await self._gathered(answered, query.budget_words, is_summary)
        episodes = self._episodes(gathered, query, at, is_summary)
        words = sum(_words_of(each) for each in episodes)
        answer = FoundEpisodes(
            search_id=search_id,
            confidence=answered.confidence if episodes else "nothing",
            unpacked=any(each.turns and each.layer is not Layer.HOT for each in episodes),
            words=words,
            episodes=tuple(episodes),
            is_degraded=vector is None,
        )
        hits = [{"raw_log_id": turn.raw_log_id, "layer": each.layer.value} for each in episodes for turn in each.turns]
        return Found(answer, hits, [each.episode_id for each in episodes[:_TOUCHED]])

    async def _allowed(self, query: SearchEpisodes) -> set[str] | None:
        """The turns that the filters by layer, by tag let through; none where there are no such filters."""
        if not (query.layers or query.tags):
            return None
        wanted: list[ColumnElement[bool]] = [EpisodeRow.chat_id == query.chat_id]
        if query.layers:
            wanted.append(EpisodeRow.layer.in_([layer.value for layer in query.layers]))
        of_turns = (
            select(EpisodeOfTurnRow.raw_log_id, EpisodeRow.tags)
            .join(EpisodeRow, EpisodeRow.id == EpisodeOfTurnRow.episode_id)
            .where(*wanted)
        )
        tags = {tag.casefold() for tag in query.tags}
        async with self.database.reading() as session:
            rows = (await session.execute(of_turns)).all()
        return {row.raw_log_id for row in rows if tags <= {tag.casefold() for tag in row.tags}}

    async def _gathered(self, answered: _Answered, budget_words: int, is_summary: bool) -> list[tuple[Hit, Any, Any]]:
        """The turns that fit, each with its episode; those of hot episodes that say it all come first."""
        hits = {hit.raw_log_id: hit for hit in answered.hits}
        query = (
            select(TurnRow, EpisodeRow)
            .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
            .join(EpisodeRow, EpisodeRow.id == EpisodeOfTurnRow.episode_id)
            .where(TurnRow.id.in_(hits))
        )
        if not is_summary:
            # What a layer keeps is the most of a row; only a summary reads it.
            query = query.options(load_only(*_LOOKED_AT, raiseload=True))
        async with self.database.reading() as session:
            rows = {turn.id: (turn, episode) for turn, episode in await session.execute(query)}
        exact = {key for key in answered.exact if key in rows and rows[key][1].layer == Layer.HOT}
        order = [key for key in hits if key in exact] + [key for key in hits if key not in exact]
        there = [(hits[key], *rows[key]) for key in order if key in rows]
        if is_summary:
            return there[:_TURNS_FOR_SUMMARY]
        words = np.array([turn.word_count for _, turn, _ in there], dtype=np.uint32)
        return [there[place] for place in fitting(range(len(there)), words, budget_words)]

    def _episodes(
        self, gathered: Sequence[tuple[Hit, Any, Any]], query: SearchEpisodes, at: datetime, is_summary: bool
    ) -> list[FoundEpisode]:
        by_episode: dict[str, list[tuple[Hit, Any, Any]]] = {}
        for each in gathered:
            by_episode.setdefault(each[2].id, []).append(each)
        left = query.budget_words
        found = []
        for group in sorted(by_episode.values(), key=lambda group: -self._worth(group, at)):
            text = _text_of(group[0][2], query) if is_summary else None
            members = [] if text is not None else _within(group, left)
            episode = self._episode(group, members, text, query.explain, at)
            if _words_of(episode) <= left and (members or text is not None):
                left -= _words_of(episode)
                found.append(episode)
        return found

    def _worth(self, group: Sequence[tuple[Hit, Any, Any]], at: datetime) -> float:
        return max(hit.score for hit, _, _ in group) + _PRIORITY_SHARE * self.rules.priority(group[0][2], at)

    def _episode(
        self,
        group: Sequence[tuple[Hit, Any, Any]],
        members: Sequence[tuple[Hit, Any, Any]],
        text: str | None,
        explain: bool,
        at: datetime,
    ) -> FoundEpisode:
        row = group[0][2]
        best = max((hit for hit, _, _ in group), key=lambda hit: hit.score)
        said = sorted((turn for _, turn, _ in members), key=lambda turn: (turn.time, turn.position))
        priority = _PRIORITY_SHARE * self.rules.priority(row, at)
        parts = ScoreParts(
            signals=dict(best.signals) | {"priority": priority},
            words=tuple(dict.fromkeys(word for hit, _, _ in group for word in hit.words)),
        )
        return FoundEpisode(
            episode_id=row.id,
            layer=Layer(row.layer),
            headline=row.headline,
            started_at=row.started_at,
            turns=tuple(as_turn(turn) for turn in said),
            text=text,
            score=best.score + priority,
            explain=parts if explain else None,
        )


def _text_of(row: EpisodeRow, query: SearchEpisodes) -> str | None:
    """What its layer says of it. A headline tells what an episode is about, not what it came to."""
    is_enough = row.layer == Layer.WARM or (row.layer == Layer.COLD and query.depth == "summary")
    return layer_text(packed(row)) if is_enough else None


def _within(group: Sequence[tuple[Hit, Any, Any]], budget_words: int) -> list[tuple[Hit, Any, Any]]:
    words = np.array([turn.word_count for _, turn, _ in group], dtype=np.uint32)
    return [group[place] for place in fitting(range(len(group)), words, budget_words)]


def _words_of(episode: FoundEpisode) -> int:
    return sum(len(turn.content.split()) for turn in episode.turns) + len((episode.text or "").split())


def _worded(index: ChatIndex, query: SearchEpisodes, at: datetime, ids: set[str] | None) -> Worded | None:
    if not len(index):
        return None
    return worded(index, asked(query.query, index.speakers(), at), _mask(index, query, ids))


def _answered(
    index: ChatIndex, query: SearchEpisodes, by_words: Worded | None, vector: bytes | None, weights: Weights
) -> _Answered:
    if by_words is None:
        return _Answered((), (), "nothing")
    question, allowed = by_words.asked, by_words.allowed
    by_score = ranked(index, by_words, vector, weights, _TRIED + query.budget_words)
    exact = _exact(index, question, by_score.order)
    parts = [
        [each for each in part_order(index, part, by_score.scores, OF_EACH_PART) if allowed[each]]
        for part in question.parts
    ]
    # Exact ones are worth a look, whether they fit or not: those of hot episodes go first.
    chosen = list(dict.fromkeys([*fitting(woven(by_score.order, parts), index.words, query.budget_words), *exact]))
    words = _words_in(index, question, chosen)
    return _Answered(
        [_hit(index, by_score, position, weights, words.get(position, ())) for position in chosen],
        [index.ids[position] for position in exact],
        confidence(by_score, bool(exact)),
    )


def _mask(index: ChatIndex, query: SearchEpisodes, ids: set[str] | None) -> NDArray[np.bool_] | None:
    """As of a moment: what was said later was not known then."""
    times = index.stretches.times
    until = min((each.timestamp() for each in (query.at, query.until) if each is not None), default=times[-1])
    if ids is None and query.since is None and until >= times[-1]:
        return None
    allowed = times <= until
    if query.since is not None:
        allowed &= times >= query.since.timestamp()
    if ids is not None:
        is_named = np.zeros(len(index), dtype=np.bool_)
        is_named[[index.places[key] for key in ids if key in index.places]] = True
        allowed &= is_named
    return np.asarray(allowed)


def _exact(index: ChatIndex, question: Asked, order: Sequence[int]) -> list[int]:
    """The best of those turns that have every word asked for; of a single word that says nothing."""
    if len(question.stems) < _EXACT_WORDS:
        return []
    fewest, *others = sorted(map(index.postings.having, question.stems), key=len)
    having = reduce(lambda those, more: those[_are_in(those, more)], others, fewest)
    if not having.size:
        return []
    best = np.array(order, dtype=np.int64)
    return [int(each) for each in best[_are_in(best, having)][:_EXACT_AT_MOST]]


def _words_in(index: ChatIndex, question: Asked, chosen: Sequence[int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    positions = np.array(chosen, dtype=np.int64)
    for stem, word in question.stems.items():
        for position in positions[_are_in(positions, index.postings.having(stem))]:
            found.setdefault(int(position), []).append(word)
    return {position: tuple(dict.fromkeys(words)) for position, words in found.items()}


def _are_in(positions: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    places = np.searchsorted(ascending, positions)
    found = places < len(ascending)
    found[found] = ascending[places[found]] == positions[found]
    return np.asarray(found)


def _hit(index: ChatIndex, by_score: Ranked, position: int, weights: Weights, words: tuple[str, ...]) -> Hit:
    signals = {name: weights.get(name, 0.0) * float(each[position]) for name, each in by_score.signals.items()}
    return Hit(index.ids[position], float(by_score.scores[position]), signals, words)

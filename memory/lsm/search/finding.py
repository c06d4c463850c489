"""Episodes that have something on a matter."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, select

from bus_schema.episodes import Layer
from bus_schema.lsm_search import FoundEpisode, FoundEpisodes, SearchEpisodes
from memory.lsm.rules import Rules
from memory.lsm.search.depth import is_overview
from memory.lsm.search.grouping import Said, grouped, within
from memory.lsm.search.hits import Answered, answered, first_look
from memory.lsm.search.question_vectors import QuestionVectors
from memory.lsm.search.shelf import Shelf
from memory.lsm.search.weights import Weights
from memory.lsm.tables import EpisodeOfTurnRow, EpisodeRow, TurnRow
from mindbus.sql.database import Database

_TURN = (
    TurnRow.id,
    TurnRow.role,
    TurnRow.content,
    TurnRow.time,
    TurnRow.speaker,
    TurnRow.position,
    TurnRow.word_count,
)
_EPISODE = (
    EpisodeRow.id.label("episode_id"),
    EpisodeRow.layer,
    EpisodeRow.headline,
    EpisodeRow.started_at,
    EpisodeRow.last_accessed,
    EpisodeRow.access_count,
    EpisodeRow.is_anchor,
)
# What a layer keeps is the most of a row; only a summary reads it.
_PACKED = (EpisodeRow.content_warm, EpisodeRow.content_cold, EpisodeRow.model, EpisodeRow.embedding)
# So many episodes count as used by whoever has searched; the rest came along.
_TOUCHED = 3
# Summaries are short: so many turns tell which episodes are meant.
_TURNS_FOR_SUMMARY = 40


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
        # The embedder sets out first; what comes next would keep it from beginning.
        await asyncio.sleep(0)
        allowed = await self._allowed(query)
        async with self.shelf.index(query.chat_id, self.questions.model) as index:
            by_words = await asyncio.to_thread(first_look, index, query, at, allowed)
            vector = await embedding
            hits = await asyncio.to_thread(answered, index, query, by_words, vector, weights)
        is_summary = query.depth == "summary" or (query.depth == "auto" and is_overview(query.query))
        gathered = await self._gathered(hits, query.budget_words, is_summary)
        episodes = grouped(gathered, query, self.rules, at, is_summary=is_summary)
        answer = FoundEpisodes(
            search_id=search_id,
            confidence=hits.confidence if episodes else "nothing",
            unpacked=any(each.turns and each.layer is not Layer.HOT for each in episodes),
            words=sum(_words_of(each) for each in episodes),
            episodes=tuple(episodes),
            is_degraded=vector is None,
        )
        kept = [{"raw_log_id": turn.raw_log_id, "layer": each.layer.value} for each in episodes for turn in each.turns]
        return Found(answer, kept, [each.episode_id for each in episodes[:_TOUCHED]])

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

    async def _gathered(self, found: Answered, budget_words: int, is_summary: bool) -> list[Said]:
        """The turns that fit, each with its episode; those of hot episodes that say it all come first."""
        hits = {hit.raw_log_id: hit for hit in found.hits}
        query = (
            select(*_TURN, *_EPISODE, *(_PACKED if is_summary else ()))
            .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
            .join(EpisodeRow, EpisodeRow.id == EpisodeOfTurnRow.episode_id)
            .where(TurnRow.id.in_(hits))
        )
        async with self.database.reading() as session:
            # Past the mapper, which adds to plain columns nothing but time.
            connection = await session.connection()
            rows = {row.id: row for row in await connection.execute(query)}
        exact = {key for key in found.exact if key in rows and rows[key].layer == Layer.HOT}
        order = [key for key in hits if key in exact] + [key for key in hits if key not in exact]
        there = [(hits[key], rows[key]) for key in order if key in rows]
        return there[:_TURNS_FOR_SUMMARY] if is_summary else within(there, budget_words)


def _words_of(episode: FoundEpisode) -> int:
    return sum(len(turn.content.split()) for turn in episode.turns) + len((episode.text or "").split())

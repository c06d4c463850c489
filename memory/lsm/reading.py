"""Episodes as somebody asks for them."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import Episode, Layer
from bus_schema.lsm import EpisodePage, ListEpisodes
from bus_schema.lsm_packing import PackReport
from bus_schema.lsm_search import FoundEpisode, FoundEpisodes, GetHotEpisodes
from bus_schema.lsm_statistics import ExplainedEpisode, NextLayer
from memory.lsm.cursors import cursor_after, place_of
from memory.lsm.refusals import NoSuchEpisode
from memory.lsm.rows import as_episode, as_head, as_turn, kept_words
from memory.lsm.rules import Rules
from memory.lsm.tables import ChatRow, EpisodeOfTurnRow, EpisodeRow, TurnRow
from mindbus.sql.database import Database

_PORTION = 100


class Reading:
    """Reads without locks, beside whoever writes."""

    def __init__(self, database: Database, rules: Rules) -> None:
        self.database, self.rules = database, rules

    async def episode(self, episode_id: str, at: datetime) -> Episode:
        """As its layer keeps it. Raises NoSuchEpisode."""
        async with self.database.reading() as session:
            row = await session.get(EpisodeRow, episode_id)
            if row is None:
                raise NoSuchEpisode(episode_id=episode_id)
            turns = await turns_of(session, episode_id)
        return await asyncio.to_thread(as_episode, row, turns, self.rules, at)

    async def is_known(self, chat_id: str) -> bool:
        """Whether anything of this chat is in the log."""
        async with self.database.reading() as session:
            return await session.get(ChatRow, chat_id) is not None

    async def heard(self, chat_ids: Sequence[str]) -> dict[str, int]:
        """How many messages of these chats are known to be in storage, too."""
        query = select(ChatRow.chat_id, ChatRow.heard).where(ChatRow.chat_id.in_(chat_ids))
        async with self.database.reading() as session:
            return {row.chat_id: row.heard for row in await session.execute(query)}

    async def explained(self, episode_id: str, at: datetime) -> ExplainedEpisode:
        """Beside its raw text, with the reasons of its place. Raises NoSuchEpisode."""
        async with self.database.reading() as session:
            row = await session.get(EpisodeRow, episode_id)
            if row is None:
                raise NoSuchEpisode(episode_id=episode_id)
            turns = await turns_of(session, episode_id)
        following = self.rules.next_layer(row)
        return ExplainedEpisode(
            episode=await asyncio.to_thread(as_episode, row, turns, self.rules, at),
            turns=tuple(map(as_turn, turns)),
            kept_words=kept_words(row),
            terms=self.rules.terms(row, at),
            next=None if following is None else NextLayer(layer=following[0], at=following[1]),
            report=None if row.layer == Layer.HOT or row.report is None else PackReport.model_validate(row.report),
        )

    async def page(self, query: ListEpisodes, at: datetime) -> EpisodePage:
        """The latest first. Raises NotACursor."""
        wanted = select(EpisodeRow).order_by(EpisodeRow.ended_at.desc(), EpisodeRow.id.desc()).limit(query.limit + 1)
        if query.chat_id is not None:
            wanted = wanted.where(EpisodeRow.chat_id == query.chat_id)
        if query.layers:
            wanted = wanted.where(EpisodeRow.layer.in_([layer.value for layer in query.layers]))
        if query.anchors_only:
            wanted = wanted.where(EpisodeRow.is_anchor)
        if query.cursor is not None:
            wanted = wanted.where(tuple_(EpisodeRow.ended_at, EpisodeRow.id) < place_of(query.cursor))
        async with self.database.reading() as session:
            rows = (await session.scalars(wanted)).all()
        shown = rows[: query.limit]
        more = cursor_after(shown[-1].ended_at, shown[-1].id) if len(rows) > query.limit else None
        return EpisodePage(items=tuple(as_head(row, self.rules, at) for row in shown), next_cursor=more)

    async def hot(self, query: GetHotEpisodes) -> FoundEpisodes:
        """The latest turns of the hot episodes that fit, in the order in which they were said."""
        latest = (
            select(TurnRow, EpisodeRow)
            .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
            .join(EpisodeRow, EpisodeRow.id == EpisodeOfTurnRow.episode_id)
            .where(TurnRow.chat_id == query.chat_id, EpisodeRow.layer == Layer.HOT.value)
            .order_by(TurnRow.time.desc(), TurnRow.position.desc())
        )
        if query.before is not None:
            latest = latest.where(TurnRow.time < query.before)
        async with self.database.reading() as session:
            found = await _fitting(session, latest, query.budget_words)
        words = sum(turn.word_count for turn, _ in found)
        return FoundEpisodes(
            confidence="found" if found else "nothing", unpacked=False, words=words, episodes=tuple(_grouped(found))
        )


async def turns_of(session: AsyncSession, episode_id: str) -> Sequence[TurnRow]:
    """The turns of an episode, in the order in which they were said."""
    query = (
        select(TurnRow)
        .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
        .where(EpisodeOfTurnRow.episode_id == episode_id)
        .order_by(TurnRow.time, TurnRow.position)
    )
    return (await session.scalars(query)).all()


Pair = tuple[TurnRow, EpisodeRow]


async def _fitting(session: AsyncSession, latest: Any, budget_words: int) -> list[Pair]:
    found: list[Pair] = []
    left, offset = budget_words, 0
    while True:
        portion = (await session.execute(latest.offset(offset).limit(_PORTION))).all()
        for turn, row in portion:
            if turn.word_count > left:
                return found[::-1]
            left -= turn.word_count
            found.append((turn, row))
        if len(portion) < _PORTION:
            return found[::-1]
        offset += _PORTION


def _grouped(pairs: Sequence[Pair]) -> Iterable[FoundEpisode]:
    rows = {row.id: row for _, row in pairs}
    for row in sorted(rows.values(), key=lambda row: row.started_at):
        turns = tuple(as_turn(turn) for turn, of in pairs if of.id == row.id)
        head = {"episode_id": row.id, "layer": Layer(row.layer), "headline": row.headline}
        yield FoundEpisode.model_validate(head | {"started_at": row.started_at, "turns": turns, "score": row.priority})

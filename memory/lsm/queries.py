"""Queries for episodes."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, tuple_

from bus_schema.dialogue import MessageKind
from bus_schema.episodes import Episode, Layer
from bus_schema.lsm import EpisodePage, ListEpisodes
from bus_schema.lsm_search import FoundEpisode, FoundEpisodes, GetHotEpisodes
from bus_schema.lsm_statistics import ExplainedEpisode, NextLayer
from bus_schema.packer import PackReport
from memory.errors import NoSuchEpisode
from memory.lsm.archived_texts import ArchivedTexts
from memory.lsm.priority import LayerRules
from memory.lsm.rows import ReadEpisode, as_episode, as_head, as_turn, noted, stored_words, turns_after, turns_of
from memory.lsm.tables import ChatRow, EpisodeOfTurnRow, EpisodeRow, TurnRow
from mindbus.sql.database import Database
from retrieval.cursors import InvalidCursor, PageKey, decode_cursor, encode_cursor

# Most turns have some ten words.
_BATCH = 20
_OTHER_TURN = (
    select(TurnRow.id)
    .where(TurnRow.chat_id == bindparam("of"), TurnRow.kind != MessageKind.HIDDEN.value)
    .where(TurnRow.id.not_in(bindparam("without", expanding=True)))
    .limit(1)
)
_TURN = (TurnRow.id, TurnRow.role, TurnRow.content, TurnRow.time, TurnRow.speaker, TurnRow.word_count)
_EPISODE = (
    EpisodeRow.id.label("episode_id"),
    EpisodeRow.layer,
    EpisodeRow.headline,
    EpisodeRow.started_at,
    EpisodeRow.priority,
)


class EpisodeQueries:
    """Reads without locks, in read-only sessions."""

    def __init__(self, database: Database, rules: LayerRules, texts: ArchivedTexts) -> None:
        self.database, self.rules, self.texts = database, rules, texts

    async def episode(self, episode_id: str, at: datetime) -> Episode:
        """An episode with the content of its layer. Raises NoSuchEpisode."""
        return await asyncio.to_thread(as_episode, await self._load(episode_id), self.rules, at)

    async def chat_of(self, episode_id: str) -> str | None:
        """The chat of an episode, None where there is no such episode."""
        query = select(EpisodeRow.chat_id).where(EpisodeRow.id == episode_id)
        return await self.database.read(lambda connection: connection.execute(query).scalar())

    async def has_turns(self, chat_id: str, without: Collection[str]) -> bool:
        """Whether a chat has turns of its episodes apart from these."""
        values = {"of": chat_id, "without": list(without)}
        return await self.database.read(lambda connection: connection.execute(_OTHER_TURN, values).first()) is not None

    async def is_known(self, chat_id: str) -> bool:
        query = select(ChatRow.chat_id).where(ChatRow.chat_id == chat_id)
        return await self.database.read(lambda connection: connection.execute(query).first()) is not None

    async def stored_counts(self, chat_ids: Sequence[str]) -> dict[str, int]:
        """Number of recorded messages that storage has too, of each of these chats that is known."""
        query = select(ChatRow.chat_id, ChatRow.heard).where(ChatRow.chat_id.in_(chat_ids))
        async with self.database.reading() as session:
            return {row.chat_id: row.heard for row in await session.execute(query)}

    async def explain(self, episode_id: str, at: datetime) -> ExplainedEpisode:
        """An episode with its raw turns and the reasons for its layer. Raises NoSuchEpisode, StorageAway."""
        read = await self._load(episode_id)
        row, turns = read.row, read.turns
        await self.texts.fill(turns)
        readable = [turn for turn in turns if turn.archived is None or turn.content]
        of_log = all(turn.archived is None for turn in turns)
        following = self.rules.next_layer(row)
        return ExplainedEpisode(
            episode=await asyncio.to_thread(as_episode, read, self.rules, at),
            turns=tuple(map(as_turn, readable)),
            raw_turns="log" if of_log else "artifact" if len(readable) == len(turns) else "gone",
            kept_words=stored_words(row),
            terms=self.rules.terms(row, at),
            next=None if following is None else NextLayer(layer=following[0], at=following[1]),
            report=None if row.layer == Layer.HOT or row.report is None else PackReport.model_validate(row.report),
        )

    async def page(self, query: ListEpisodes, at: datetime) -> EpisodePage:
        """Episodes by descending end. Raises InvalidCursor."""
        statement = select(EpisodeRow).order_by(EpisodeRow.ended_at.desc(), EpisodeRow.id.desc()).limit(query.limit + 1)
        if query.chat_id is not None:
            statement = statement.where(EpisodeRow.chat_id == query.chat_id)
        if query.layers:
            statement = statement.where(EpisodeRow.layer.in_([layer.value for layer in query.layers]))
        if query.anchors_only:
            statement = statement.where(EpisodeRow.is_anchor)
        if query.cursor is not None:
            key = _key(query.cursor)
            statement = statement.where(tuple_(EpisodeRow.ended_at, EpisodeRow.id) < (key.time, key.id))
        async with self.database.reading() as session:
            rows = (await session.scalars(statement)).all()
        shown = rows[: query.limit]
        more = encode_cursor(shown[-1].ended_at.isoformat(), shown[-1].id) if len(rows) > query.limit else None
        return EpisodePage(items=tuple(as_head(row, self.rules, at) for row in shown), next_cursor=more)

    async def hot(self, query: GetHotEpisodes) -> FoundEpisodes:
        """The latest turns of hot episodes that fit the budget, in the order of the dialogue."""
        latest = (
            select(*_TURN, *_EPISODE)
            .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
            .join(EpisodeRow, EpisodeRow.id == EpisodeOfTurnRow.episode_id)
            .where(TurnRow.chat_id == query.chat_id, EpisodeRow.layer == Layer.HOT.value)
            .order_by(TurnRow.time.desc(), TurnRow.position.desc())
        )
        if query.before is not None:
            latest = latest.where(TurnRow.time < query.before)
        if query.exclude:
            latest = latest.where(TurnRow.id.not_in(query.exclude))
        rows = await self.database.read(lambda connection: _fitting(connection, latest, query.budget_words))
        return FoundEpisodes(
            confidence="found" if rows else "nothing",
            unpacked=False,
            words=sum(row.word_count for row in rows),
            episodes=tuple(_group(rows)),
        )

    async def _load(self, episode_id: str) -> ReadEpisode:
        """An episode, its turns and their notes, those that were said after it."""
        async with self.database.reading() as session:
            row = await session.get(EpisodeRow, episode_id)
            if row is None:
                raise NoSuchEpisode(episode_id=episode_id)
            later = await turns_after(session, row.chat_id, row.ended_at) if row.layer == Layer.WARM else []
            turns = await turns_of(session, episode_id)
            notes = await noted(session, turns)
        # It only tells which decisions have been superseded.
        await self.texts.fill_if_there(later)
        return ReadEpisode(row, turns, notes, later)


def _fitting(connection: Connection, latest: Any, budget_words: int) -> list[Row[Any]]:
    """The latest turns with their episodes that fit the budget, in the order of the dialogue."""
    rows: list[Row[Any]] = []
    words_left = budget_words
    while True:
        batch = connection.execute(latest.offset(len(rows)).limit(_BATCH)).all()
        for row in batch:
            words_left -= row.word_count
            if words_left < 0:
                return rows[::-1]
            rows.append(row)
        if len(batch) < _BATCH:
            return rows[::-1]


def _group(rows: Sequence[Row[Any]]) -> Iterable[FoundEpisode]:
    episodes = {row.episode_id: row for row in rows}
    for row in sorted(episodes.values(), key=lambda row: row.started_at):
        turns = tuple(as_turn(turn) for turn in rows if turn.episode_id == row.episode_id)
        head = {"episode_id": row.episode_id, "layer": Layer(row.layer), "headline": row.headline}
        yield FoundEpisode.model_validate(head | {"started_at": row.started_at, "turns": turns, "score": row.priority})


def _key(cursor: str) -> PageKey:
    match decode_cursor(cursor):
        case [time, episode_id]:
            return PageKey.parse(time, episode_id)
    raise InvalidCursor

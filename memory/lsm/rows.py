"""Rows of turns, episodes and chats: reading, locking and conversion to the schema's types."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple, TypeGuard, cast

from pydantic import TypeAdapter
from sqlalchemy import Row, delete, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from bus_schema.dialogue import MessageKind
from bus_schema.embeddings import Embedding
from bus_schema.episodes import (
    ColdContent,
    Content,
    Decision,
    Episode,
    EpisodeHead,
    HotContent,
    Layer,
    Note,
    NoteKind,
    RawTurn,
    Speaker,
    WarmContent,
)
from memory.lsm.priority import LayerRules
from memory.lsm.tables import ChatRow, EpisodeOfTurnRow, EpisodeRow, NoteRow, TurnRow, TurnVectorRow, wants_vector
from memory.packing.decisions import decisions_of
from memory.packing.entities import entities_of
from memory.packing.supersession import superseded
from mindbus.sql.tables import insert_or_ignore

_CONTENT: TypeAdapter[Content] = TypeAdapter(Content)
# A decision that stood so long is rarely changed.
_LATER_TURNS = 300


class ReadEpisode(NamedTuple):
    """An episode with its turns, their notes, and the first turns said after it."""

    row: EpisodeRow
    turns: Sequence[TurnRow]
    notes: Sequence[Note]
    later: Sequence[TurnRow]


_HEAD_COLUMNS = (
    *("id", "chat_id", "created_at", "last_accessed", "access_count", "layer", "headline", "tags", "continues_from"),
    *("related_to", "is_anchor", "anchor_reason", "started_at", "ended_at", "turns", "version"),
)


def lock_chat(session: Session, chat_id: str) -> ChatRow:
    """Lock a chat's row for this transaction; it is inserted where there is none."""
    query = select(ChatRow).where(ChatRow.chat_id == chat_id).with_for_update()
    query = query.execution_options(populate_existing=True)
    if (row := session.scalar(query)) is not None:
        return row
    session.execute(insert_or_ignore(session, ChatRow).values(chat_id=chat_id, turns=0, heard=0))
    return session.scalars(query).one()


async def lock_chat_of(session: AsyncSession, episode_id: str) -> None:
    """Lock the chat's row of an episode, if there is one; to be locked before rows of episodes and turns."""
    chat_id = select(EpisodeRow.chat_id).where(EpisodeRow.id == episode_id).scalar_subquery()
    await session.execute(select(ChatRow.chat_id).where(ChatRow.chat_id == chat_id).with_for_update())


def delete_empty_chat(session: Session, chat_id: str) -> None:
    """Delete a row that was only inserted to be locked."""
    empty = delete(ChatRow).where(ChatRow.chat_id == chat_id, ChatRow.turns == 0)
    session.execute(empty.execution_options(synchronize_session=False))


async def turns_of(session: AsyncSession, episode_id: str) -> Sequence[TurnRow]:
    """Turns of an episode in the order of the dialogue."""
    query = (
        select(TurnRow)
        .join(EpisodeOfTurnRow, EpisodeOfTurnRow.raw_log_id == TurnRow.id)
        .where(EpisodeOfTurnRow.episode_id == episode_id)
        .order_by(TurnRow.time, TurnRow.position)
    )
    return (await session.scalars(query)).all()


def text_digest(text: str) -> int:
    """Signed 64 bits, by which a text that is in an artifact is compared."""
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)


async def lacking_vectors(session: AsyncSession, episode_ids: Collection[str]) -> set[str]:
    """Ids of those episodes that have a turn without a vector."""
    of_turn = EpisodeOfTurnRow.raw_log_id
    query = (
        select(EpisodeOfTurnRow.episode_id)
        .join(TurnRow, TurnRow.id == of_turn)
        .outerjoin(TurnVectorRow, TurnVectorRow.raw_log_id == of_turn)
        .where(wants_vector(), EpisodeOfTurnRow.episode_id.in_(episode_ids), TurnVectorRow.raw_log_id.is_(None))
    )
    return set(await session.scalars(query.distinct()))


async def resettle(session: AsyncSession, raw_log_ids: Collection[str]) -> None:
    """Have the episodes of these turns settled again that were settled before all their vectors were there."""
    within = select(EpisodeOfTurnRow.episode_id).where(EpisodeOfTurnRow.raw_log_id.in_(raw_log_ids))
    episodes = set(await session.scalars(within.distinct()))
    complete = episodes - await lacking_vectors(session, episodes)
    by_words = (EpisodeRow.id.in_(complete), EpisodeRow.is_settled, EpisodeRow.model.is_(None))
    query = select(EpisodeRow).where(*by_words).order_by(EpisodeRow.id).with_for_update()
    for row in await session.scalars(query):
        row.is_settled = False


def as_turn(row: TurnRow | Row[Any]) -> RawTurn:
    """A turn; rows were validated when they were recorded."""
    return RawTurn.model_construct(
        raw_log_id=row.id,
        role=cast("Speaker", row.role),
        content=row.content,
        time=row.time,
        speaker=row.speaker,
    )


async def noted(session: AsyncSession, turns: Sequence[TurnRow]) -> tuple[Note, ...]:
    """Notes of these turns, in the order in which they were made."""
    found: dict[tuple[str, str], list[str]] = {}
    query = select(NoteRow).where(NoteRow.raw_log_id.in_([turn.id for turn in turns])).order_by(NoteRow.position)
    for row in await session.scalars(query):
        found.setdefault((row.kind, row.text), []).append(row.raw_log_id)
    return tuple(Note(kind=cast("NoteKind", kind), text=text, raw_log_ids=ids) for (kind, text), ids in found.items())


async def add_notes(session: AsyncSession, turns: Sequence[TurnRow], notes: Iterable[Note]) -> bool:
    """Add those of the notes that these turns lack, in the current transaction; whether there was one."""
    chats = {turn.id: turn.chat_id for turn in turns}
    known = {(each, note.kind, note.text) for note in await noted(session, turns) for each in note.raw_log_ids}
    wanted = dict.fromkeys((each, note.kind, note.text) for note in notes for each in note.raw_log_ids)
    new = [each for each in wanted if each not in known]
    for raw_log_id, kind, text in new:
        session.add(NoteRow(raw_log_id=raw_log_id, chat_id=chats[raw_log_id], kind=kind, text=text))
    return bool(new)


def as_head(row: EpisodeRow, rules: LayerRules, at: datetime) -> EpisodeHead:
    """An episode without its content, its priority as of `at`."""
    return EpisodeHead.model_validate(_head(row, rules, at))


async def turns_after(session: AsyncSession, chat_id: str, time: datetime) -> Sequence[TurnRow]:
    """Turns of a chat that were said after a time, the first ones of many."""
    said_later = (TurnRow.chat_id == chat_id, TurnRow.time > time, TurnRow.kind != MessageKind.HIDDEN.value)
    query = select(TurnRow).where(*said_later).order_by(TurnRow.time, TurnRow.position).limit(_LATER_TURNS)
    return (await session.scalars(query)).all()


def as_episode(read: ReadEpisode, rules: LayerRules, at: datetime) -> Episode:
    """An episode with the content of its layer; slow for a long hot one."""
    row, turns = read.row, read.turns
    content = as_hot(turns) if row.layer == Layer.HOT else pack_of(row)
    if has_decisions(content):
        content = with_superseded(content, decisions_of(list(map(as_turn, read.later))))
    kept = {"content": content, "raw_log_ids": tuple(turn.id for turn in turns), "notes": read.notes}
    return Episode.model_validate(_head(row, rules, at) | kept)


def has_decisions(content: Content) -> TypeGuard[HotContent | WarmContent]:
    """Whether there are decisions that later ones may change: to look for these takes a while."""
    return not isinstance(content, ColdContent) and bool(content.decisions)


def with_superseded(content: HotContent | WarmContent, later: Sequence[Decision]) -> Content:
    """Content whose decisions tell which of these later ones, or of their own, seem to change them."""
    return content.model_copy(update={"decisions": superseded(content.decisions, later)})


def as_hot(rows: Sequence[TurnRow]) -> HotContent:
    """Raw turns with their entities and decisions; slow for long texts."""
    turns = tuple(map(as_turn, rows))
    return HotContent.model_construct(raw_messages=turns, entities=entities_of(turns), decisions=decisions_of(turns))


def pack_of(row: EpisodeRow) -> Content:
    """The pack of a warm or cold episode, with its vector."""
    stored = (row.content_warm if row.layer == Layer.WARM else row.content_cold) or {}
    content = _CONTENT.validate_python(stored)
    if row.embedding is None or row.model is None:
        return content
    return content.model_copy(update={"embedding": Embedding.from_bytes(row.model, row.embedding)})


def stored_words(row: EpisodeRow) -> int:
    return row.word_count if row.layer_word_count is None else row.layer_word_count


def _head(row: EpisodeRow, rules: LayerRules, at: datetime) -> dict[str, object]:
    columns: dict[str, object] = {name: getattr(row, name) for name in _HEAD_COLUMNS}
    return columns | {"priority": rules.priority(row, at), "words": row.word_count, "kept_words": stored_words(row)}

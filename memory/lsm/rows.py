"""Turns, episodes as rows; rows as turns, episodes."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import TypeAdapter

from bus_schema.embeddings import Embedding
from bus_schema.episodes import Content, Episode, EpisodeHead, HotContent, Layer, RawTurn
from memory.lsm.rules import Rules
from memory.lsm.tables import EpisodeRow, TurnRow
from memory.packing.decisions import decisions_of
from memory.packing.entities import entities_of

_CONTENT: TypeAdapter[Content] = TypeAdapter(Content)


def as_turn(row: TurnRow) -> RawTurn:
    """What was said; a row was looked at when it came in."""
    return RawTurn.model_construct(
        raw_log_id=row.id,
        role=row.role,  # type: ignore[arg-type]  # a plain word in the row
        content=row.content,
        time=row.time,
        speaker=row.speaker,
    )


def as_head(row: EpisodeRow, rules: Rules, at: datetime) -> EpisodeHead:
    """An episode without its content, its priority as of `at`."""
    return EpisodeHead.model_validate(_head(row, rules, at))


def as_episode(row: EpisodeRow, turns: Sequence[TurnRow], rules: Rules, at: datetime) -> Episode:
    """The same as its layer keeps it; of a long hot one it takes its time."""
    content = as_hot(turns) if row.layer == Layer.HOT else packed(row)
    ids = tuple(turn.id for turn in turns)
    return Episode.model_validate(_head(row, rules, at) | {"content": content, "raw_log_ids": ids})


def as_hot(rows: Sequence[TurnRow]) -> HotContent:
    """The whole text, with what it names and decides; of much text it takes its time."""
    turns = tuple(map(as_turn, rows))
    return HotContent.model_construct(raw_messages=turns, entities=entities_of(turns), decisions=decisions_of(turns))


def packed(row: EpisodeRow) -> Content:
    """What the layer of a packed episode keeps, with its vector."""
    stored = (row.content_warm if row.layer == Layer.WARM else row.content_cold) or {}
    content = _CONTENT.validate_python(stored)
    if row.embedding is None or row.model is None:
        return content
    return content.model_copy(update={"embedding": Embedding.kept(row.model, row.embedding)})


def kept_words(row: EpisodeRow) -> int:
    """How many its layer has."""
    return row.word_count if row.layer_word_count is None else row.layer_word_count


def _head(row: EpisodeRow, rules: Rules, at: datetime) -> dict[str, object]:
    same = ("id", "chat_id", "created_at", "last_accessed", "access_count", "layer", "headline", "continues_from")
    more = ("tags", "related_to", "is_anchor", "anchor_reason", "started_at", "ended_at", "turns", "version")
    columns: dict[str, object] = {name: getattr(row, name) for name in (*same, *more)}
    return columns | {"priority": rules.priority(row, at), "words": row.word_count, "kept_words": kept_words(row)}

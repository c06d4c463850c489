"""The tables of long-term memory (spec 002 §4.7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.dialogue import MessageKind
from mindbus.sql.tables import Utc, add_inbox_tables, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "lsm"

_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# Episodes whose topics and links have yet to be determined.
_UNSETTLED = sa.text("NOT is_settled")
_WITHOUT_FEEDBACK = sa.text("feedback IS NULL")


class LsmBase(DeclarativeBase):
    """Base of all tables of long-term memory."""

    metadata = named_metadata()


class ChatRow(LsmBase):
    """A chat with turns in the log; writers lock it first.

    `turns` is their number, hence the next position; `heard` is the number of those that storage has too.
    """

    __tablename__ = "chats"
    chat_id: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    turns: Mapped[int] = mapped_column(sa.BigInteger)
    heard: Mapped[int] = mapped_column(sa.BigInteger)


class TurnRow(LsmBase):
    """A turn of the append-only log, deleted only by an erasure.

    Positions are in order of arrival; a dialogue is ordered by (`time`, `position`). A `hidden` turn is an instruction
    and belongs to no episode. `is_heard` where storage has the message too. Where the text is in the artifact of its
    episode, `content` is empty and `archived` the digest of the text (`rows.text_digest`).
    """

    __tablename__ = "raw_log"
    __table_args__ = (sa.Index(None, "chat_id", "position", unique=True), sa.Index(None, "chat_id", "time", "position"))
    id: Mapped[str] = mapped_column(sa.String(68), primary_key=True)
    chat_id: Mapped[str] = mapped_column(sa.String(64))
    position: Mapped[int] = mapped_column(sa.BigInteger)
    message_id: Mapped[str | None] = mapped_column(sa.String(68))
    role: Mapped[str] = mapped_column(sa.String(16))
    kind: Mapped[str] = mapped_column(sa.String(16))
    speaker: Mapped[str | None] = mapped_column(sa.String(80))
    content: Mapped[str] = mapped_column(sa.Text)
    time: Mapped[datetime] = mapped_column(Utc)
    word_count: Mapped[int] = mapped_column(sa.Integer)
    is_heard: Mapped[bool] = mapped_column(sa.Boolean)
    recorded_at: Mapped[datetime] = mapped_column(Utc)
    archived: Mapped[int | None] = mapped_column(sa.BigInteger)


class EpisodeRow(LsmBase):
    """An episode; its raw text is in the log.

    `layer_accesses` counts accesses since the last transition; `packed_version` is the version that the pack was made
    of, `layer_word_count` the pack's number of words. `anchored_by` is `hand` where an anchor was set or removed by
    command.
    """

    __tablename__ = "episodes"
    __table_args__ = (
        sa.Index(None, "chat_id", "ended_at", "id"),
        sa.Index(None, "layer", "last_accessed", "id"),
        sa.Index("ix_episodes_unsettled", "chat_id", "id", sqlite_where=_UNSETTLED, postgresql_where=_UNSETTLED),
    )
    id: Mapped[str] = mapped_column(sa.String(67), primary_key=True)
    chat_id: Mapped[str] = mapped_column(sa.String(64))
    created_at: Mapped[datetime] = mapped_column(Utc)
    last_accessed: Mapped[datetime] = mapped_column(Utc)
    access_count: Mapped[int] = mapped_column(sa.Integer)
    layer_accesses: Mapped[int] = mapped_column(sa.Integer)
    layer: Mapped[str] = mapped_column(sa.String(8))
    priority: Mapped[float] = mapped_column(sa.Double)
    content_hot: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    content_warm: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    content_cold: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    headline: Mapped[str] = mapped_column(sa.Text)
    tags: Mapped[list[str]] = mapped_column(_JSON)
    model: Mapped[str | None] = mapped_column(sa.String(128))
    embedding: Mapped[bytes | None] = mapped_column(sa.LargeBinary)
    continues_from: Mapped[str | None] = mapped_column(sa.String(67))
    related_to: Mapped[list[str]] = mapped_column(_JSON)
    is_anchor: Mapped[bool] = mapped_column(sa.Boolean)
    anchor_reason: Mapped[str | None] = mapped_column(sa.String(16))
    anchored_by: Mapped[str | None] = mapped_column(sa.String(8))
    started_at: Mapped[datetime] = mapped_column(Utc)
    ended_at: Mapped[datetime] = mapped_column(Utc)
    turns: Mapped[int] = mapped_column(sa.Integer)
    word_count: Mapped[int] = mapped_column(sa.Integer)
    layer_word_count: Mapped[int | None] = mapped_column(sa.Integer)
    version: Mapped[int] = mapped_column(sa.BigInteger)
    packed_version: Mapped[int | None] = mapped_column(sa.BigInteger)
    report: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    is_settled: Mapped[bool] = mapped_column(sa.Boolean)
    fragment_id: Mapped[str | None] = mapped_column(sa.String(69))


class EpisodeOfTurnRow(LsmBase):
    __tablename__ = "episode_of_turn"
    __table_args__ = (sa.Index(None, "episode_id"),)
    raw_log_id: Mapped[str] = mapped_column(sa.ForeignKey("raw_log.id", ondelete="CASCADE"), primary_key=True)
    episode_id: Mapped[str] = mapped_column(sa.ForeignKey("episodes.id", ondelete="CASCADE"))


class NoteRow(LsmBase):
    """A note of one turn, made when its episode was packed; one of several turns has a row for each."""

    __tablename__ = "notes"
    __table_args__ = (sa.Index(None, "chat_id", "position"), sa.Index(None, "raw_log_id"))
    position: Mapped[int] = mapped_column(_NUMBER, primary_key=True, autoincrement=True)
    raw_log_id: Mapped[str] = mapped_column(sa.ForeignKey("raw_log.id", ondelete="CASCADE"))
    chat_id: Mapped[str] = mapped_column(sa.String(64))
    kind: Mapped[str] = mapped_column(sa.String(16))
    text: Mapped[str] = mapped_column(sa.Text)


class LayerChangeRow(LsmBase):
    """Transition of an episode into a layer, with its words there; before the first one it was hot."""

    __tablename__ = "layer_changes"
    __table_args__ = (sa.Index(None, "episode_id"),)
    position: Mapped[int] = mapped_column(_NUMBER, primary_key=True, autoincrement=True)
    episode_id: Mapped[str] = mapped_column(sa.ForeignKey("episodes.id", ondelete="CASCADE"))
    at: Mapped[datetime] = mapped_column(Utc)
    layer: Mapped[str] = mapped_column(sa.String(8))
    word_count: Mapped[int] = mapped_column(sa.Integer)


class ArchiveRow(LsmBase):
    """The artifact with the texts of a cold episode, of `sha256` and `size_bytes`; they take `text_bytes` in the log.

    It is `begun` until storage has confirmed the artifact and the texts are only there, `archived` from then on,
    `restored` once they are in the log again; `refused` where storage did not accept it, at the time `at`; `small`
    where there is none, since it would save too little.
    """

    __tablename__ = "archives"
    episode_id: Mapped[str] = mapped_column(sa.ForeignKey("episodes.id", ondelete="CASCADE"), primary_key=True)
    artifact_id: Mapped[str] = mapped_column(sa.String(68))
    state: Mapped[str] = mapped_column(sa.String(8))
    at: Mapped[datetime] = mapped_column(Utc)
    sha256: Mapped[str] = mapped_column(sa.String(64))
    size_bytes: Mapped[int] = mapped_column(sa.BigInteger)
    text_bytes: Mapped[int] = mapped_column(sa.BigInteger)


class TurnVectorRow(LsmBase):
    """Vector of a turn, little-endian float32."""

    __tablename__ = "turn_vectors"
    raw_log_id: Mapped[str] = mapped_column(sa.ForeignKey("raw_log.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(sa.String(128))
    data: Mapped[bytes] = mapped_column(sa.LargeBinary)


def wants_vector() -> sa.ColumnElement[bool]:
    """Condition for a turn to be embedded: hidden and empty ones are not searched."""
    has_text = sa.or_(TurnRow.content != "", TurnRow.archived.is_not(None))
    return sa.and_(TurnRow.kind != MessageKind.HIDDEN.value, has_text)


def of_chat(table: Any, chat_id: str | None) -> list[sa.ColumnElement[bool]]:
    """Condition for the rows of one chat; none for those of all."""
    return [] if chat_id is None else [table.chat_id == chat_id]


@dataclass(frozen=True, slots=True)
class SearchFeedback:
    """Ids of the turns of a search that were of use, and of those that an answer rated unhelpful has drawn on."""

    used: frozenset[str]
    rejected: frozenset[str] = frozenset()
    is_rated: bool = False

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """From what is kept with the search; the user's rating outweighs the turns reported as used."""
        reported, rating = frozenset(kept.get("used", ())), kept.get("rating", {})
        rated = frozenset(rating.get("used", ()))
        match rating.get("value"):
            case "helpful":
                return cls(reported | rated, is_rated=True)
            case "unhelpful":
                return cls(reported - rated, rated, is_rated=True)
            case _:
                return cls(reported)


class SearchRow(LsmBase):
    """A search with the turns that it returned; `feedback` is kept as `SearchFeedback` reads it.

    `noticed_at` is when the retention first saw it, since a search may be as of any time.
    """

    __tablename__ = "searches"
    __table_args__ = (
        sa.Index(None, "chat_id", "at"),
        sa.Index(
            "ix_searches_without_feedback",
            "noticed_at",
            sqlite_where=_WITHOUT_FEEDBACK,
            postgresql_where=_WITHOUT_FEEDBACK,
        ),
    )
    search_id: Mapped[str] = mapped_column(sa.String(69), primary_key=True)
    requester: Mapped[str] = mapped_column(sa.String(160))
    chat_id: Mapped[str] = mapped_column(sa.String(64))
    at: Mapped[datetime] = mapped_column(Utc)
    query: Mapped[str] = mapped_column(sa.Text)
    unpacked: Mapped[bool] = mapped_column(sa.Boolean)
    hits: Mapped[list[dict[str, Any]]] = mapped_column(_JSON)
    feedback: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    noticed_at: Mapped[datetime | None] = mapped_column(Utc)


class SearchWeightsRow(LsmBase):
    """Tuned weights of the search."""

    __tablename__ = "search_weights"
    name: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    value: Mapped[dict[str, Any]] = mapped_column(_JSON)
    version: Mapped[int] = mapped_column(sa.Integer)


inbox_tables = add_inbox_tables(LsmBase.metadata)

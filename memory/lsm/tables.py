"""The tables of long-term memory (spec 002 §4.7)."""

from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    and_,
)
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.dialogue import MessageKind
from mindbus.sql.columns import Utc
from mindbus.sql.tables import add_ledger_tables, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "lsm"

_JSON = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
_NUMBER = BigInteger().with_variant(Integer, "sqlite")
# Episodes that have yet to be looked at: are they of one matter, do they go on from another?
_UNSETTLED = sql("NOT is_settled")
_WITHOUT_FEEDBACK = sql("feedback IS NULL")


class Base(DeclarativeBase):
    """All tables of long-term memory."""

    metadata = named_metadata()


class ChatRow(Base):
    """A chat of which something is in the log; whoever writes to the chat locks it first.

    `turns` is how many there are, hence the next one's position; `heard` counts those that storage has, too.
    """

    __tablename__ = "chats"
    chat_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    turns: Mapped[int] = mapped_column(BigInteger)
    heard: Mapped[int] = mapped_column(BigInteger)


class TurnRow(Base):
    """What was said, for good: rows are added, never changed, until somebody is forgotten.

    Positions are those of arrival; the order of a dialogue is that of (`time`, `position`). A `hidden` turn is an
    instruction that nobody has said: it is in no episode. `is_heard` where it came from storage.
    """

    __tablename__ = "raw_log"
    __table_args__ = (Index(None, "chat_id", "position", unique=True), Index(None, "chat_id", "time", "position"))
    id: Mapped[str] = mapped_column(String(68), primary_key=True)
    chat_id: Mapped[str] = mapped_column(String(64))
    position: Mapped[int] = mapped_column(BigInteger)
    message_id: Mapped[str | None] = mapped_column(String(68))
    role: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(16))
    speaker: Mapped[str | None] = mapped_column(String(80))
    content: Mapped[str] = mapped_column(Text)
    time: Mapped[datetime] = mapped_column(Utc)
    word_count: Mapped[int] = mapped_column(Integer)
    is_heard: Mapped[bool] = mapped_column(Boolean)
    recorded_at: Mapped[datetime] = mapped_column(Utc)


class EpisodeRow(Base):
    """An episode; what it says in full, while hot or when unpacked, is read from the log.

    `layer_accesses` counts those since it came into its layer; `packed_version` is the version of which its pack was
    made, `layer_word_count` how many words that pack has. `anchored_by` is `hand` where somebody has decided, either
    way.
    """

    __tablename__ = "episodes"
    __table_args__ = (
        Index(None, "chat_id", "ended_at", "id"),
        Index(None, "layer", "last_accessed", "id"),
        Index("ix_episodes_unsettled", "chat_id", "id", sqlite_where=_UNSETTLED, postgresql_where=_UNSETTLED),
    )
    id: Mapped[str] = mapped_column(String(67), primary_key=True)
    chat_id: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(Utc)
    last_accessed: Mapped[datetime] = mapped_column(Utc)
    access_count: Mapped[int] = mapped_column(Integer)
    layer_accesses: Mapped[int] = mapped_column(Integer)
    layer: Mapped[str] = mapped_column(String(8))
    priority: Mapped[float] = mapped_column(Double)
    content_hot: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    content_warm: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    content_cold: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    headline: Mapped[str] = mapped_column(Text)
    tags: Mapped[list[str]] = mapped_column(_JSON)
    model: Mapped[str | None] = mapped_column(String(128))
    embedding: Mapped[bytes | None] = mapped_column(LargeBinary)
    continues_from: Mapped[str | None] = mapped_column(String(67))
    related_to: Mapped[list[str]] = mapped_column(_JSON)
    is_anchor: Mapped[bool] = mapped_column(Boolean)
    anchor_reason: Mapped[str | None] = mapped_column(String(16))
    anchored_by: Mapped[str | None] = mapped_column(String(8))
    started_at: Mapped[datetime] = mapped_column(Utc)
    ended_at: Mapped[datetime] = mapped_column(Utc)
    turns: Mapped[int] = mapped_column(Integer)
    word_count: Mapped[int] = mapped_column(Integer)
    layer_word_count: Mapped[int | None] = mapped_column(Integer)
    version: Mapped[int] = mapped_column(BigInteger)
    packed_version: Mapped[int | None] = mapped_column(BigInteger)
    report: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    is_settled: Mapped[bool] = mapped_column(Boolean)
    fragment_id: Mapped[str | None] = mapped_column(String(69))


class EpisodeOfTurnRow(Base):
    """The one episode that a turn belongs to; the log itself knows nothing of episodes."""

    __tablename__ = "episode_of_turn"
    __table_args__ = (Index(None, "episode_id"),)
    raw_log_id: Mapped[str] = mapped_column(ForeignKey("raw_log.id", ondelete="CASCADE"), primary_key=True)
    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"))


class LayerChangeRow(Base):
    """An episode came into a layer, with so many words there; before the first of its changes it was hot."""

    __tablename__ = "layer_changes"
    __table_args__ = (Index(None, "episode_id"),)
    position: Mapped[int] = mapped_column(_NUMBER, primary_key=True, autoincrement=True)
    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"))
    at: Mapped[datetime] = mapped_column(Utc)
    layer: Mapped[str] = mapped_column(String(8))
    word_count: Mapped[int] = mapped_column(Integer)


class TurnVectorRow(Base):
    """The vector of a turn, little-endian float32; a turn without a row here waits for one."""

    __tablename__ = "turn_vectors"
    raw_log_id: Mapped[str] = mapped_column(ForeignKey("raw_log.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(String(128))
    data: Mapped[bytes] = mapped_column(LargeBinary)


def wants_vector() -> ColumnElement[bool]:
    """Whether a turn will ever have one: nobody looks for what was hidden, or for nothing."""
    return and_(TurnRow.kind != MessageKind.HIDDEN.value, TurnRow.content != "")


class SearchRow(Base):
    """A search with what it has found; `feedback` is what of it was of use, none as long as nobody has said.

    `noticed_at` is since when that is known; a search may be as of any time.
    """

    __tablename__ = "searches"
    __table_args__ = (
        Index(None, "chat_id", "at"),
        Index(
            "ix_searches_without_feedback",
            "noticed_at",
            sqlite_where=_WITHOUT_FEEDBACK,
            postgresql_where=_WITHOUT_FEEDBACK,
        ),
    )
    search_id: Mapped[str] = mapped_column(String(69), primary_key=True)
    requester: Mapped[str] = mapped_column(String(160))
    chat_id: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(Utc)
    query: Mapped[str] = mapped_column(Text)
    unpacked: Mapped[bool] = mapped_column(Boolean)
    hits: Mapped[list[dict[str, Any]]] = mapped_column(_JSON)
    feedback: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    noticed_at: Mapped[datetime | None] = mapped_column(Utc)


class SearchWeightsRow(Base):
    """A set of weights of the search, as it was shipped or as it was fitted."""

    __tablename__ = "search_weights"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[dict[str, Any]] = mapped_column(_JSON)
    version: Mapped[int] = mapped_column(Integer)


ledger = add_ledger_tables(Base.metadata)

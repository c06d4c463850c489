"""The tables of dialogues, of the timeline, of the agents' own data."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, String, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from mindbus.sql.tables import Utc
from storage_service.models import Base

_JSON = JSON(none_as_null=True).with_variant(JSONB, "postgresql")


class DialogueRow(Base):
    """One user's dialogue: its row is the lock under which messages get their places.

    What lies between `fragmented_position` and `last_position` is its buffer.
    """

    __tablename__ = "dialogues"
    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    last_position: Mapped[int] = mapped_column(BigInteger)
    fragmented_position: Mapped[int] = mapped_column(BigInteger)
    last_activity: Mapped[datetime] = mapped_column(Utc, index=True)


class DialogueMessageRow(Base):
    """Something that was said, in its place in the dialogue."""

    __tablename__ = "dialogue_messages"
    __table_args__ = (UniqueConstraint("message_id"), Index(None, "user_id", "time"))
    user_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    message_id: Mapped[str] = mapped_column(String(80))
    role: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(16))
    content: Mapped[str | None] = mapped_column(Text)
    ref: Mapped[dict[str, Any] | None] = mapped_column(_JSON)
    time: Mapped[datetime] = mapped_column(Utc)
    kem_ids: Mapped[list[str] | None] = mapped_column(_JSON)


class FragmentRow(Base):
    """A stretch of a dialogue that has become a fragment; its messages stay where they are."""

    __tablename__ = "dialogue_fragments"
    __table_args__ = (UniqueConstraint("user_id", "first_position"),)
    fragment_id: Mapped[str] = mapped_column(String(80), primary_key=True)
    user_id: Mapped[str] = mapped_column(String(64))
    first_position: Mapped[int] = mapped_column(BigInteger)
    last_position: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[datetime] = mapped_column(Utc)
    ended_at: Mapped[datetime] = mapped_column(Utc)
    reason: Mapped[str] = mapped_column(String(16))
    ref: Mapped[dict[str, Any] | None] = mapped_column(_JSON)


class TimelineRow(Base):
    """An event that was on the bus; `sequence` is the order in which the timeline heard of it."""

    __tablename__ = "timeline"
    __table_args__ = (
        UniqueConstraint("event_id"),
        Index(None, "user_id", "sequence"),
        Index(None, "trace_id", "sequence"),
        Index(None, "topic", "sequence"),
    )
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    event_id: Mapped[str] = mapped_column(String(80))
    name: Mapped[str] = mapped_column(String(128))
    topic: Mapped[str] = mapped_column(String(64))
    time: Mapped[datetime] = mapped_column(Utc, index=True)
    user_id: Mapped[str | None] = mapped_column(String(64))
    trace_id: Mapped[str | None] = mapped_column(String(128))
    envelope: Mapped[dict[str, Any]] = mapped_column(_JSON)


class AgentDatumRow(Base):
    """A value that an agent keeps between messages."""

    __tablename__ = "agent_data"
    agent: Mapped[str] = mapped_column(String(64), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(256), primary_key=True)
    value: Mapped[Any] = mapped_column(_JSON)
    version: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[datetime] = mapped_column(Utc)

"""The tables of storage's care for its store."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from mindbus.sql.tables import Utc
from storage_service.models import Base


class RemovalRow(Base):
    """A file that is decided to go to the orphans, until it is there; with an empty target it is kept nowhere."""

    __tablename__ = "removals"
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    target: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(String(16))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(64))
    generation: Mapped[int | None] = mapped_column(Integer)
    decided_at: Mapped[datetime] = mapped_column(Utc)


class NoticeRow(Base):
    """An event that has a cause already, until it is told."""

    __tablename__ = "notices"
    # SQLite would use numbers again that it has deleted.
    __table_args__ = ({"sqlite_autoincrement": True},)
    seq: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    type: Mapped[str] = mapped_column(String(128))
    trace_id: Mapped[str | None] = mapped_column(String(128))
    step_id: Mapped[str | None] = mapped_column(String(64))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)


class MarkRow(Base):
    """How far a recurring work has come, and when."""

    __tablename__ = "care_marks"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(String(256))
    noted_at: Mapped[datetime] = mapped_column(Utc)

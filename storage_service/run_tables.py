"""The tables of the orchestrator."""

from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from mindbus.sql.tables import Utc, add_inbox_tables, named_metadata

MIGRATIONS = Path(__file__).parent / "migrations" / "orchestrator"


class Base(DeclarativeBase):
    """All of the orchestrator's tables; storage has its own, in another database or schema."""

    metadata = named_metadata()


class RunRow(Base):
    """A run; `version` counts its changes, so that two who change it at once cannot both succeed."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "started_at", "run_id"),)
    run_id: Mapped[str] = mapped_column(String(68), primary_key=True)
    version: Mapped[int]
    request_sha256: Mapped[str] = mapped_column(String(64))
    card_name: Mapped[str] = mapped_column(String(63))
    card: Mapped[dict[str, Any]] = mapped_column(JSON)
    status: Mapped[str] = mapped_column(String(16), index=True)
    started_by: Mapped[str] = mapped_column(String(160))
    started_at: Mapped[datetime] = mapped_column(Utc)
    finished_at: Mapped[datetime | None] = mapped_column(Utc)
    inputs: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    params: Mapped[dict[str, str]] = mapped_column(JSON)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    reason: Mapped[str] = mapped_column(Text)


class StepRow(Base):
    """A step of a run; `due_at` is its timer: an attempt's end, a pause's end, the time to miss its artifact."""

    __tablename__ = "steps"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    step_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[int]
    role: Mapped[str] = mapped_column(String(63))
    status: Mapped[str] = mapped_column(String(16), index=True)
    attempt: Mapped[int]
    critical: Mapped[bool]
    artifact: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    context: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    started_at: Mapped[datetime | None] = mapped_column(Utc)
    finished_at: Mapped[datetime | None] = mapped_column(Utc)
    due_at: Mapped[datetime | None] = mapped_column(Utc, index=True)
    reason: Mapped[str] = mapped_column(Text)


inbox_tables = add_inbox_tables(Base.metadata)

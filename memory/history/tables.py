"""Tables of the histories."""

from datetime import datetime
from pathlib import Path

from sqlalchemy import String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from mindbus.sql.tables import Utc, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "history"
# Ordered by code point, as in SQLite and Redis.
_KEY = String(160).with_variant(String(160, collation="C"), "postgresql")


class HistoryBase(DeclarativeBase):
    """Declarative base of the histories."""

    metadata = named_metadata()


class HistoryRow(HistoryBase):
    """History under a key: the same JSON array as in Redis, with its digest."""

    __tablename__ = "histories"
    key: Mapped[str] = mapped_column(_KEY, primary_key=True)
    chat_id: Mapped[str] = mapped_column(String(64), index=True)
    digest: Mapped[str] = mapped_column(String(40))
    messages: Mapped[str] = mapped_column(Text)


class GoneRow(HistoryBase):
    """Mark of a dropped message, so that it is not added again; tells neither chat nor content."""

    __tablename__ = "gone_messages"
    mark: Mapped[str] = mapped_column(String(64), primary_key=True)
    gone_at: Mapped[datetime] = mapped_column(Utc, index=True)

"""The tables of the histories."""

from datetime import datetime
from pathlib import Path

from sqlalchemy import String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from mindbus.sql.tables import Utc, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "history"
# In the order of their letters, as SQLite and Redis have them.
_KEY = String(160).with_variant(String(160, collation="C"), "postgresql")


class HistoryBase(DeclarativeBase):
    """All tables of the histories."""

    metadata = named_metadata()


class HistoryRow(HistoryBase):
    """What is kept under a key: the JSON array that Redis would have, with its digest."""

    __tablename__ = "histories"
    key: Mapped[str] = mapped_column(_KEY, primary_key=True)
    chat_id: Mapped[str] = mapped_column(String(64), index=True)
    digest: Mapped[str] = mapped_column(String(40))
    messages: Mapped[str] = mapped_column(Text)


class GoneRow(HistoryBase):
    """A message that was kept once, so that it is not added again; it says neither of whom nor what."""

    __tablename__ = "gone_messages"
    mark: Mapped[str] = mapped_column(String(64), primary_key=True)
    gone_at: Mapped[datetime] = mapped_column(Utc, index=True)

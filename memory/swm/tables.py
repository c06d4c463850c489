"""The tables of the working memory: what must outlive its process."""

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from sqlalchemy import JSON, BigInteger, Index, Integer, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from mindbus.sql.tables import Utc, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "swm"


class SwmBase(DeclarativeBase):
    """All tables of the working memory."""

    metadata = named_metadata()


class WriteRow(SwmBase):
    """A unit on its way into the global memory, or into a cache that is away; without a unit, one to be dropped."""

    __tablename__ = "writes"
    __table_args__ = (Index(None, "target", "seq"), Index(None, "kem_id"), {"sqlite_autoincrement": True})
    seq: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)
    target: Mapped[str] = mapped_column(String(8))
    kem_id: Mapped[str] = mapped_column(String(128))
    kem: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # Who says so, by which fields: the rest is as the global memory has it.
    publisher: Mapped[str] = mapped_column(String(160))
    given: Mapped[list[str]] = mapped_column(JSON)


class LockRow(SwmBase):
    """A lock, also when nobody holds it: `fencing` goes on counting. It is held until `expires_at`."""

    __tablename__ = "locks"
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    ticket: Mapped[str] = mapped_column(String(128))
    token: Mapped[str] = mapped_column(String(64))
    holder: Mapped[str] = mapped_column(String(160))
    fencing: Mapped[int] = mapped_column(BigInteger)
    # None once it was released.
    expires_at: Mapped[datetime | None] = mapped_column(Utc)


class SharedCounterRow(SwmBase):
    """What a counter stands at."""

    __tablename__ = "shared_counters"
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)


class OperationRow(SwmBase):
    """An addition that has been made, with what the counter stood at then."""

    __tablename__ = "counter_operations"
    __table_args__ = (Index(None, "made_at"),)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    operation_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)
    made_at: Mapped[datetime] = mapped_column(Utc)


class SubscriptionRow(SwmBase):
    """Who wants to hear of what."""

    __tablename__ = "subscriptions"
    subscription_id: Mapped[str] = mapped_column(String(68), primary_key=True)
    agent_id: Mapped[str] = mapped_column(String(160))
    filters: Mapped[list[str]] = mapped_column(JSON)


class KnownKemRow(SwmBase):
    """A unit that subscribers have heard of, as they know it: of one that is gone, nothing else says who is to hear."""

    __tablename__ = "told_kems"
    kem_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    facts: Mapped[dict[str, JsonValue]] = mapped_column("metadata", JSON)
    # None where everybody may read it.
    readers: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))

"""Tables of the working memory."""

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from sqlalchemy import JSON, BigInteger, Index, Integer, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from mindbus.sql.tables import Utc, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "swm"


class SwmBase(DeclarativeBase):
    metadata = named_metadata()


class WriteRow(SwmBase):
    """Queued write of a unit to the global memory or to a cache that is away; without `kem` a removal."""

    __tablename__ = "writes"
    __table_args__ = (Index(None, "target", "seq"), Index(None, "kem_id"), {"sqlite_autoincrement": True})
    seq: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)
    target: Mapped[str] = mapped_column(String(8))
    kem_id: Mapped[str] = mapped_column(String(128))
    kem: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # Publisher and the fields that it gave; the global memory decides the others.
    publisher: Mapped[str] = mapped_column(String(160))
    given: Mapped[list[str]] = mapped_column(JSON)
    # Message that it is sent in, from before it is sent; that message is repeated until it is answered.
    message_id: Mapped[str | None] = mapped_column(String(128))


class PublishedRow(SwmBase):
    """Unit that a message has published: the same message, come again, publishes it no second time.

    Ids are people's words, which may have to be forgotten; `kem_key` is made from one and does not tell it.
    """

    __tablename__ = "published"
    __table_args__ = (Index(None, "published_at"),)
    message_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    kem_key: Mapped[str] = mapped_column(String(36), primary_key=True)
    published_at: Mapped[datetime] = mapped_column(Utc)


class LockRow(SwmBase):
    """Lock, held until `expires_at`; the row outlives its holders because `fencing` goes on counting."""

    __tablename__ = "locks"
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    ticket: Mapped[str] = mapped_column(String(128))
    token: Mapped[str] = mapped_column(String(64))
    holder: Mapped[str] = mapped_column(String(160))
    fencing: Mapped[int] = mapped_column(BigInteger)
    # None after a release.
    expires_at: Mapped[datetime | None] = mapped_column(Utc)


class SharedCounterRow(SwmBase):
    __tablename__ = "shared_counters"
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)


class OperationRow(SwmBase):
    """Addition that has been made, with the value after it."""

    __tablename__ = "counter_operations"
    __table_args__ = (Index(None, "made_at"),)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    operation_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)
    made_at: Mapped[datetime] = mapped_column(Utc)


class SubscriptionRow(SwmBase):
    __tablename__ = "subscriptions"
    subscription_id: Mapped[str] = mapped_column(String(68), primary_key=True)
    agent_id: Mapped[str] = mapped_column(String(160))
    filters: Mapped[list[str]] = mapped_column(JSON)


class KnownKemRow(SwmBase):
    """Unit as subscribers last saw it: after its deletion, nothing else tells who is to be notified."""

    __tablename__ = "told_kems"
    kem_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    facts: Mapped[dict[str, JsonValue]] = mapped_column("metadata", JSON)
    # None for a public unit.
    readers: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))

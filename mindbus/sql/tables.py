"""Shared parts of the tables of all services: names of constraints, inbox and outbox."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from bus_schema.envelope import Envelope
from mindbus.bus.transport import Outgoing


class Utc(TypeDecorator[datetime]):
    """An instant; SQLite, which knows no time zones, keeps it as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC, so that SQLite's texts sort as the instants do."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Back to an aware datetime."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


def named_metadata() -> MetaData:
    """For a service's tables: every constraint has a name, so that a migration can name it on every database."""
    return MetaData(naming_convention=_NAMES)


@dataclass(frozen=True)
class InboxTables:
    """Messages handled, with their outcomes; messages without a cause, or without a queue, still to be published.

    A row of `inbox` that is not `published` holds the only trace of what its message caused. In `quarantine` lies what
    could not be read of either, for a person to look at.
    """

    inbox: Table
    outbox: Table
    quarantine: Table


# In these words in every query: SQLAlchemy's own for SQLite, `published = 0`, would not find the index.
NOT_PUBLISHED = text("NOT published")
_OF_THE_UNPUBLISHED: dict[str, Any] = {f"{dialect}_where": NOT_PUBLISHED for dialect in ("sqlite", "postgresql")}


def add_inbox_tables(metadata: MetaData) -> InboxTables:
    """Put `inbox`, `outbox` and `quarantine` into a service's metadata; twice is as good as once."""
    if "inbox" in metadata.tables:
        return InboxTables(*(metadata.tables[name] for name in ("inbox", "outbox", "quarantine")))
    inbox = Table(
        "inbox",
        metadata,
        Column("consumer", String(128), primary_key=True),
        Column("message_id", String(128), primary_key=True),
        Column("outcome", JSON, nullable=False),
        Column("handled_at", DateTime(timezone=True), nullable=False, index=True),
        # The rows of releases that had everything in the outbox are published from there.
        Column("published", Boolean, nullable=False, server_default=text("true")),
        Index("ix_inbox_unpublished", "handled_at", **_OF_THE_UNPUBLISHED),
    )
    outbox = Table(
        "outbox",
        metadata,
        Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("exchange", String(128), nullable=False),
        Column("routing_key", String(256), nullable=False),
        Column("mandatory", Boolean, nullable=False),
        Column("envelope", Text, nullable=False),
        # SQLite would use numbers again that it has deleted: a second relay, late with its delete, would take new rows.
        sqlite_autoincrement=True,
    )
    quarantine = Table(
        "quarantine",
        metadata,
        Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("source", String(300), nullable=False),
        Column("content", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("at", DateTime(timezone=True), nullable=False),
    )
    return InboxTables(inbox, outbox, quarantine)


def dump(message: Outgoing) -> dict[str, Any]:
    """A message as a row of the outbox, or as a part of an outcome."""
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "mandatory": message.mandatory,
        "envelope": message.body.decode(),
    }


def load(row: Any) -> Outgoing:
    """The message of which `dump` is the row. Raises ValueError, TypeError or KeyError where it is none."""
    envelope = Envelope.model_validate_json(row["envelope"])
    return Outgoing(row["exchange"], row["routing_key"], envelope, row["envelope"].encode(), row["mandatory"])


def insert_or_ignore(within: AsyncSession | Session | str, table: Any) -> "sqlite.Insert | postgresql.Insert":
    """An insert into a table, or the table of a class, that passes over a row whose key is taken.

    `within` is a session, or the name of a dialect.
    """
    if (within if isinstance(within, str) else within.get_bind().dialect.name) == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return postgresql.insert(table).on_conflict_do_nothing()

"""Facts: one row each; a fact's words never change, what confirms or supersedes it is added."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Index, String, Text, and_, or_, select
from sqlalchemy.orm import Mapped, mapped_column

from bus_schema.facts import FactPage, ListFactRecords, SaveFacts
from bus_schema.processing import Fact
from mindbus.sql.database import Database
from mindbus.sql.tables import Utc
from retrieval.cursors import PageKey, split_page
from storage_service.rows import insert_if_absent
from storage_service.tables import JSON_VALUE, StorageBase

_MOST_MESSAGES = 50


class FactRow(StorageBase):
    """A fact; `said_by` owns it."""

    __tablename__ = "facts"
    __table_args__ = (Index(None, "said_by", "said_at"), Index(None, "said_at"))
    fact_id: Mapped[str] = mapped_column(String(80), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    text: Mapped[str] = mapped_column(Text)
    said_by: Mapped[str] = mapped_column(String(64))
    project: Mapped[str | None] = mapped_column(String(100))
    said_at: Mapped[datetime] = mapped_column(Utc)
    supersedes: Mapped[str | None] = mapped_column(String(80))
    superseded_by: Mapped[str | None] = mapped_column(String(80))
    message_ids: Mapped[list[str]] = mapped_column(JSON_VALUE)


class Facts:
    """The facts table."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def save(self, command: SaveFacts) -> None:
        """Insert or complete facts within the current transaction; repeating it changes nothing."""
        session = self.database.session
        for fact in command.facts:
            values: dict[str, Any] = fact.model_dump() | {"message_ids": list(fact.message_ids)[:_MOST_MESSAGES]}
            await insert_if_absent(session, FactRow, **(values | {"kind": fact.kind.value}))
            row = await session.get(FactRow, fact.fact_id, with_for_update=True, populate_existing=True)
            if row is None:
                continue
            row.superseded_by = row.superseded_by or fact.superseded_by
            message_ids = list(dict.fromkeys((*row.message_ids, *fact.message_ids)))[:_MOST_MESSAGES]
            if message_ids != row.message_ids:
                row.message_ids = message_ids
            await session.flush()

    async def page(self, query: ListFactRecords) -> FactPage:
        """Raises InvalidCursor."""
        statement = select(FactRow).where(*_conditions(query))
        if query.cursor is not None:
            key = PageKey.parse_plain(query.cursor)
            same_time = and_(FactRow.said_at == key.time, FactRow.fact_id > key.id)
            statement = statement.where(or_(FactRow.said_at < key.time, same_time))
        statement = statement.order_by(FactRow.said_at.desc(), FactRow.fact_id).limit(query.limit + 1)
        async with self.database.reading() as session:
            rows, last = split_page((await session.scalars(statement)).all(), query.limit)
        return FactPage(
            items=tuple(map(_as_fact, rows)), next_cursor=PageKey(last.said_at, last.fact_id).plain if last else None
        )


def _conditions(query: ListFactRecords) -> Iterable[ColumnElement[bool]]:
    if query.users:
        yield FactRow.said_by.in_(query.users)
    if query.fact_ids:
        yield FactRow.fact_id.in_(query.fact_ids)
    if query.kind is not None:
        yield FactRow.kind == query.kind.value
    if not query.superseded:
        yield FactRow.superseded_by.is_(None)


def _as_fact(row: FactRow) -> Fact:
    columns: dict[str, Any] = {name: getattr(row, name) for name in Fact.model_fields}
    return Fact.model_validate(columns)

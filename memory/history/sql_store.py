"""Histories in a database, a row per key: tables and store."""

import json
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from sqlalchemy import (
    JSON,
    Connection,
    Select,
    String,
    Text,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.history import chat_of
from memory.history.store import KNOWN_FOR, HistoryChange, digest_of, mark_of
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from mindbus.sql.statements import PreparedStatement
from mindbus.sql.tables import Utc, insert_or_ignore, named_metadata

MIGRATIONS = Path(__file__).parents[1] / "migrations" / "history"
# Ordered by code point, as in SQLite and Redis.
_KEY = String(160).with_variant(String(160, collation="C"), "postgresql")


class HistoryBase(DeclarativeBase):
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


class SqlStore:
    """HistoryStore with a transaction per change; of concurrent changes one succeeds."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    async def open(self) -> None:
        await upgrade(self._database, MIGRATIONS)

    async def close(self) -> None:
        await self._database.dispose()

    async def read(self, key: str, known_digest: str | None) -> bytes | None:
        values = {"of": key, "known": known_digest or ""}
        row = await self._database.read(lambda connection: _TEXT.first(connection, values))
        if row is None:
            return None if known_digest == "" else b""
        return None if row[0] is None else str(row[0]).encode()

    async def replace(self, change: HistoryChange) -> frozenset[str] | None:
        try:
            is_written = await self._database.write(lambda connection: self._replace(connection, change))
        except _RemovedBefore as removed:
            return removed.ids
        return None if is_written else frozenset()

    async def keys(self, chat_id: str | None, after: str, limit: int) -> list[str]:
        query = select(HistoryRow.key).where(HistoryRow.key > after).order_by(HistoryRow.key).limit(limit)
        if chat_id is not None:
            query = query.where(HistoryRow.chat_id == chat_id)
        async with self._database.reading() as session:
            return list(await session.scalars(query))

    async def forget_old(self) -> None:
        async with self._database.transaction() as session:
            await session.execute(delete(GoneRow).where(GoneRow.gone_at < self._clock() - KNOWN_FOR))
        # What has been deleted stays in SQLite's log until then.
        await self._database.truncate_log()

    def _replace(self, connection: Connection, change: HistoryChange) -> bool:
        """Whether the stored digest was the known one. Raises _RemovedBefore, which undoes the change."""
        if not _write(connection, change):
            return False
        # After the write, which serialises writers: messages that others dropped are marked by now.
        added = {mark_of(change.key, message_id): message_id for message_id in change.added}
        if known := _known(connection, added):
            raise _RemovedBefore(frozenset(added[mark] for mark in known))
        dropped = {mark_of(change.key, message_id) for message_id in change.dropped}
        if new := dropped - _known(connection, dropped):
            now = self._clock()
            _MARKING.run(connection, [{"mark": mark, "gone_at": now} for mark in sorted(new)])
        return True


class _RemovedBefore(Exception):
    """Messages that are to be added were there before, and were dropped."""

    def __init__(self, ids: frozenset[str]) -> None:
        super().__init__(ids)
        self.ids = ids


_HISTORIES, _GONE = HistoryRow.__table__, GoneRow.__table__
_IS_KEY = _HISTORIES.c.key == bindparam("of")
_TEXT = PreparedStatement(
    select(case((_HISTORIES.c.digest != bindparam("known"), _HISTORIES.c.messages)).label("changed")).where(_IS_KEY)
)
_IS_UNCHANGED = (_IS_KEY, _HISTORIES.c.digest == bindparam("known"))
_DELETION = PreparedStatement(delete(HistoryRow).where(*_IS_UNCHANGED))
_CHANGE = PreparedStatement(update(HistoryRow).where(*_IS_UNCHANGED))
_INSERTION = PreparedStatement(lambda dialect: insert_or_ignore(dialect, HistoryRow).returning(HistoryRow.key))
_MARKING = PreparedStatement(insert(GoneRow))


def _write(connection: Connection, change: HistoryChange) -> bool:
    """Write the text if the stored digest is still the known one; False otherwise."""
    known = {"of": change.key, "known": change.known}
    if not change.text:
        return not change.known or _DELETION.count(connection, known) == 1
    values = {"digest": digest_of(change.text), "messages": change.text.decode()}
    if change.known:
        return _CHANGE.count(connection, known | values) == 1
    return _INSERTION.first(connection, values | {"key": change.key, "chat_id": chat_of(change.key)}) is not None


def _known(connection: Connection, marks: Collection[str]) -> set[str]:
    return {row.mark for row in _MARKS.all(connection, {"marks": json.dumps(list(marks))})} if marks else set()


def _marks_among(dialect: str) -> Select[tuple[str]]:
    given = bindparam("marks", type_=Text)
    listed = func.json_each(given) if dialect == "sqlite" else func.json_array_elements_text(cast(given, JSON))
    return select(_GONE.c.mark).where(_GONE.c.mark.in_(select(listed.table_valued("value").c.value)))


_MARKS = PreparedStatement(_marks_among)

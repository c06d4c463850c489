"""Histories in a database, a row per key: tables and store."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import String, Text, case, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bus_schema.history import chat_of
from memory.history.store import KNOWN_FOR, HistoryChange, digest_of, mark_of
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
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
        text = case((HistoryRow.digest != (known_digest or ""), HistoryRow.messages))
        async with self._database.reading() as session:
            row = (await session.execute(select(text).where(HistoryRow.key == key))).one_or_none()
        if row is None:
            return None if known_digest == "" else b""
        return None if row[0] is None else str(row[0]).encode()

    async def replace(self, change: HistoryChange) -> frozenset[str] | None:
        async with self._database.transaction() as session:
            if not await self._write(session, change):
                return frozenset()
            # After the write, which serialises writers: messages that others dropped are marked by now.
            removed = await _removed_ids(session, change)
            if removed:
                await session.rollback()
                return removed
            await self._mark(session, change)
        return None

    async def keys(self, chat_id: str | None, after: str, limit: int) -> list[str]:
        query = select(HistoryRow.key).where(HistoryRow.key > after).order_by(HistoryRow.key).limit(limit)
        if chat_id is not None:
            query = query.where(HistoryRow.chat_id == chat_id)
        async with self._database.reading() as session:
            return list(await session.scalars(query))

    async def forget_old(self) -> None:
        async with self._database.transaction() as session:
            await session.execute(delete(GoneRow).where(GoneRow.gone_at < self._clock() - KNOWN_FOR))

    async def _write(self, session: AsyncSession, change: HistoryChange) -> bool:
        """Write the text if the stored digest is still the known one; False otherwise."""
        is_unchanged = (HistoryRow.key == change.key, HistoryRow.digest == change.known)
        if not change.text:
            if not change.known:
                return True
            return await session.scalar(delete(HistoryRow).where(*is_unchanged).returning(HistoryRow.key)) is not None
        values = {"digest": digest_of(change.text), "messages": change.text.decode()}
        if change.known:
            write: Any = update(HistoryRow).where(*is_unchanged).values(values)
        else:
            write = insert_or_ignore(session, HistoryRow).values(key=change.key, chat_id=chat_of(change.key), **values)
        return await session.scalar(write.returning(HistoryRow.key)) is not None

    async def _mark(self, session: AsyncSession, change: HistoryChange) -> None:
        marks = {mark_of(change.key, message_id) for message_id in change.dropped}
        if marks:
            now = self._clock()
            existing = set(await session.scalars(select(GoneRow.mark).where(GoneRow.mark.in_(marks))))
            if new := marks - existing:
                await session.execute(insert(GoneRow), [{"mark": mark, "gone_at": now} for mark in sorted(new)])


async def _removed_ids(session: AsyncSession, change: HistoryChange) -> frozenset[str]:
    marks = {mark_of(change.key, message_id): message_id for message_id in change.added}
    if not marks:
        return frozenset()
    rows = await session.scalars(select(GoneRow.mark).where(GoneRow.mark.in_(marks)))
    return frozenset(marks[mark] for mark in rows)

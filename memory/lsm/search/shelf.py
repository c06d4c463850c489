"""The indexes that are at hand."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, func, select

from bus_schema.dialogue import MessageKind
from memory.lsm.search.chat_index import ChatIndex, IndexedTurn
from memory.lsm.tables import TurnRow, TurnVectorRow
from mindbus.sql.database import Database

_PORTION = 2000


@dataclass(slots=True)
class _Entry:
    index: ChatIndex
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    positions: int = 0
    is_stale: bool = True
    vectors: dict[str, bytes] = field(default_factory=dict)


class Shelf:
    """One index a chat, made of the rows when it is first asked for, extended as turns come; a `Follower` of the log.

    As many as weigh no more than `limit_bytes` together stay, those that were asked for last; one is always at hand.
    """

    def __init__(self, database: Database, gap: timedelta, limit_bytes: int) -> None:
        self.database, self.gap, self.limit_bytes = database, gap, limit_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def recorded(self, chat_id: str) -> None:
        """As in Follower."""
        if chat_id in self._entries:
            self._entries[chat_id].is_stale = True

    def forgotten(self, chat_id: str | None) -> None:
        """As in Follower."""
        if chat_id is None:
            self._entries.clear()
        else:
            self._entries.pop(chat_id, None)

    def put_vectors(self, chat_id: str, vectors: Mapping[str, bytes]) -> None:
        """Vectors that are in the rows by now."""
        if chat_id in self._entries:
            self._entries[chat_id].vectors.update(vectors)

    @asynccontextmanager
    async def index(self, chat_id: str, model: str | None) -> AsyncIterator[ChatIndex]:
        """That of a chat, up to date, for one user at a time; with the vectors of one model. Raises DatabaseAway."""
        entry = self._entries.setdefault(chat_id, _Entry(ChatIndex(self.gap)))
        self._entries.move_to_end(chat_id)
        async with entry.lock:
            if entry.is_stale:
                await self._catch_up(chat_id, entry, model)
            if entry.vectors:
                vectors, entry.vectors = entry.vectors, {}
                await asyncio.to_thread(entry.index.put_vectors, vectors)
            yield entry.index
        self._make_room()

    @property
    def size_bytes(self) -> int:
        """About as much as is in memory."""
        return sum(entry.index.size_bytes for entry in self._entries.values())

    async def _catch_up(self, chat_id: str, entry: _Entry, model: str | None) -> None:
        entry.is_stale = False
        try:
            await self._extend(chat_id, entry, model)
        except BaseException:
            # Half of the turns may be in it; the next to ask begins anew.
            entry.index, entry.positions, entry.is_stale = ChatIndex(self.gap), 0, True
            raise

    async def _extend(self, chat_id: str, entry: _Entry, model: str | None) -> None:
        of_chat = and_(TurnRow.chat_id == chat_id, TurnRow.kind != MessageKind.HIDDEN.value)
        is_new = and_(TurnRow.chat_id == chat_id, TurnRow.position >= entry.positions)
        async with self.database.reading() as session:
            first, last = (
                await session.execute(select(func.min(TurnRow.time), func.max(TurnRow.position)).where(is_new))
            ).one()
            if first is None:
                return
            if not entry.index.follows(first):
                # Something was said earlier than what is here: all of it is put in order anew.
                entry.index, entry.positions = ChatIndex(self.gap), 0
            columns = (TurnRow.id, TurnRow.time, TurnRow.speaker, TurnRow.content, TurnRow.word_count)
            has_vector = and_(TurnVectorRow.raw_log_id == TurnRow.id, TurnVectorRow.model == model)
            query = (
                select(*columns, TurnVectorRow.data)
                .outerjoin(TurnVectorRow, has_vector)
                .where(of_chat, TurnRow.position >= entry.positions, TurnRow.position <= last)
                .order_by(TurnRow.time, TurnRow.position)
            )
            rows = await session.stream(query.execution_options(yield_per=_PORTION))
            async for portion in rows.partitions():
                await asyncio.to_thread(_add, entry.index, portion)
        entry.positions = last + 1

    def _make_room(self) -> None:
        sizes = {chat_id: entry.index.size_bytes for chat_id, entry in self._entries.items()}
        total = sum(sizes.values())
        for chat_id in list(self._entries)[:-1]:
            if total <= self.limit_bytes:
                return
            if not self._entries[chat_id].lock.locked():
                del self._entries[chat_id]
                total -= sizes[chat_id]


def _add(index: ChatIndex, rows: Any) -> None:
    index.add(IndexedTurn(*row) for row in rows)

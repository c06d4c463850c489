"""Cache of chat indexes, built from the tables on demand."""

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

_BATCH = 2000


@dataclass(slots=True)
class _Entry:
    """An index of the log's first `next_position` turns, with vectors that are yet to be put into it."""

    index: ChatIndex
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_position: int = 0
    is_stale: bool = True
    vectors: dict[str, bytes] = field(default_factory=dict)


class ChatIndexCache:
    """One index per chat, built when first used and extended as turns are recorded; a `LogListener`.

    The least recently used are dropped while all together exceed `limit_bytes`; the latest always stays.
    """

    def __init__(self, database: Database, gap: timedelta, limit_bytes: int) -> None:
        self.database, self.gap, self.limit_bytes = database, gap, limit_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """Estimated memory of all indexes."""
        return sum(entry.index.size_bytes for entry in self._entries.values())

    def on_recorded(self, chat_id: str) -> None:
        """Mark the chat's index as stale."""
        if chat_id in self._entries:
            self._entries[chat_id].is_stale = True

    def on_erased(self, chat_id: str | None) -> None:
        """Drop the chat's index, or all."""
        if chat_id is None:
            self._entries.clear()
        else:
            self._entries.pop(chat_id, None)

    def put_vectors(self, chat_id: str, vectors: Mapping[str, bytes]) -> None:
        """Hand over vectors that have been committed."""
        if chat_id in self._entries:
            self._entries[chat_id].vectors.update(vectors)

    @asynccontextmanager
    async def index(self, chat_id: str, model: str | None) -> AsyncIterator[ChatIndex]:
        """Lock a chat's index, up to date and with the vectors of this model. Raises DatabaseAway."""
        entry = self._entries.setdefault(chat_id, _Entry(ChatIndex(self.gap)))
        self._entries.move_to_end(chat_id)
        async with entry.lock:
            if entry.is_stale:
                await self._update(chat_id, entry, model)
            if entry.vectors:
                vectors, entry.vectors = entry.vectors, {}
                await asyncio.to_thread(entry.index.put_vectors, vectors)
            yield entry.index
        self._evict()

    async def _update(self, chat_id: str, entry: _Entry, model: str | None) -> None:
        entry.is_stale = False
        try:
            await self._extend(chat_id, entry, model)
        except BaseException:
            # Some of the new turns may be in the index: the next use builds it anew.
            entry.index, entry.next_position, entry.is_stale = ChatIndex(self.gap), 0, True
            raise

    async def _extend(self, chat_id: str, entry: _Entry, model: str | None) -> None:
        is_new = and_(TurnRow.chat_id == chat_id, TurnRow.position >= entry.next_position)
        async with self.database.reading() as session:
            bounds = select(func.min(TurnRow.time), func.max(TurnRow.position)).where(is_new)
            first, last = (await session.execute(bounds)).one()
            if first is None:
                return
            if not entry.index.follows(first):
                # A new turn is older than one in the index: build it anew, in order.
                entry.index, entry.next_position = ChatIndex(self.gap), 0
            columns = (TurnRow.id, TurnRow.time, TurnRow.speaker, TurnRow.content, TurnRow.word_count)
            has_vector = and_(TurnVectorRow.raw_log_id == TurnRow.id, TurnVectorRow.model == model)
            query = (
                select(*columns, TurnVectorRow.data)
                .outerjoin(TurnVectorRow, has_vector)
                .where(TurnRow.chat_id == chat_id, TurnRow.kind != MessageKind.HIDDEN.value)
                .where(TurnRow.position >= entry.next_position, TurnRow.position <= last)
                .order_by(TurnRow.time, TurnRow.position)
            )
            rows = await session.stream(query.execution_options(yield_per=_BATCH))
            async for batch in rows.partitions():
                await asyncio.to_thread(_add, entry.index, batch)
        entry.next_position = last + 1

    def _evict(self) -> None:
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

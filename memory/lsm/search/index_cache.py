"""Cache of the chat indexes, and their snapshots on disk."""

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from sqlalchemy import and_, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.dialogue import MessageKind
from bus_schema.episodes import NoteKind
from memory.lsm.archived_texts import ArchivedTexts
from memory.lsm.log_changes import LogListener
from memory.lsm.search.chat_index import ChatIndex, IndexedTurn
from memory.lsm.search.index_snapshots import IndexSnapshots, SavedIndex
from memory.lsm.tables import NoteRow, TurnRow, TurnVectorRow
from mindbus.logs import logger
from mindbus.sdk.errors import StorageAway
from mindbus.sql.database import Database

_BATCH = 2000
_IDS = 500
# A snapshot is written anew at so many times as many turns or vectors.
_GROWTH = 1.25
# Until an index that lacks texts is built anew: they may be readable by then.
_REREAD_S = 3600.0


@dataclass(slots=True)
class _Entry:
    """An index of the log's first `next_position` turns, with vectors of `model` that are yet to be put into it.

    `saved` is how many turns and vectors its snapshot has; `lacks_since` is the monotonic time at which texts were
    missing, so that it is not saved, and built anew after a while.
    """

    index: ChatIndex
    model: str | None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_position: int = 0
    is_opened: bool = False
    is_stale: bool = True
    vectors: dict[str, bytes] = field(default_factory=dict)
    saved: tuple[int, int] = (0, 0)
    lacks_since: float | None = None

    def begin_anew(self, gap: timedelta) -> None:
        """Have it built of the whole log at its next use."""
        self.index, self.next_position, self.is_stale, self.lacks_since = ChatIndex(gap), 0, True, None

    @property
    def has_grown(self) -> bool:
        """Whether it has many more turns or vectors than its snapshot."""
        turns, vectors = self.saved
        return len(self.index) >= _GROWTH * turns or self.index.vectors.count >= _GROWTH * max(vectors, 1)


class ChatIndexCache(LogListener):
    """One index per chat, built or mapped from its snapshot when first used, extended as turns are recorded.

    The least recently used are dropped while all together exceed `limit_bytes`; the latest always stays.
    """

    def __init__(
        self, database: Database, gap: timedelta, limit_bytes: int, snapshots: IndexSnapshots, texts: ArchivedTexts
    ) -> None:
        self.database, self.gap, self.limit_bytes = database, gap, limit_bytes
        self.snapshots, self.texts = snapshots, texts
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def size_bytes(self, chat_id: str | None = None) -> int:
        """Memory that the chat's index takes, or all of them."""
        entries = self._entries
        of_chat = entries.values() if chat_id is None else [entries[chat_id]] if chat_id in entries else []
        return sum(entry.index.size_bytes for entry in of_chat)

    def on_recorded(self, chat_id: str) -> None:
        if chat_id in self._entries:
            self._entries[chat_id].is_stale = True

    def on_erased(self, chat_id: str | None) -> None:
        if chat_id is None:
            self._entries.clear()
        else:
            self._entries.pop(chat_id, None)
        self.snapshots.delete(chat_id)

    def put_vectors(self, chat_id: str, vectors: Mapping[str, bytes]) -> None:
        """Hand over vectors that have been committed."""
        if chat_id in self._entries:
            self._entries[chat_id].vectors.update(vectors)

    @asynccontextmanager
    async def index(self, chat_id: str, model: str | None) -> AsyncIterator[ChatIndex]:
        """Lock a chat's index, up to date and with the vectors of this model. Raises DatabaseAway, StorageAway.

        Without a model, as before the embedder is open, one that has vectors keeps them.
        """
        entry = self._entries.setdefault(chat_id, _Entry(ChatIndex(self.gap), model))
        self._entries.move_to_end(chat_id)
        async with entry.lock:
            if not entry.is_opened:
                await self._open(chat_id, entry)
            if model is not None and entry.model != model:
                # It was built without vectors, or with others: those of turns long embedded would never come.
                entry.begin_anew(self.gap)
                entry.model, entry.vectors, entry.saved = model, {}, (0, 0)
            if entry.lacks_since is not None and time.monotonic() >= entry.lacks_since + _REREAD_S:
                await self._reread(chat_id, entry)
            if entry.is_stale:
                await self._update(chat_id, entry)
            if entry.vectors:
                vectors, entry.vectors = entry.vectors, {}
                await asyncio.to_thread(entry.index.put_vectors, vectors)
            yield entry.index
        self._evict()

    async def save(self) -> None:
        """Write a snapshot of each large index that has grown, and go on with what is mapped from it. Raises OSError.

        Whoever searches that chat meanwhile waits.
        """
        for chat_id, entry in list(self._entries.items()):
            if len(entry.index) < self.snapshots.least_turns or not entry.has_grown:
                continue
            async with entry.lock:
                if entry.model is not None and not entry.vectors and entry.lacks_since is None:
                    await self._save(chat_id, entry, SavedIndex(entry.index, entry.model, entry.next_position))

    async def _save(self, chat_id: str, entry: _Entry, saved: SavedIndex) -> None:
        await asyncio.to_thread(self.snapshots.write, chat_id, saved)
        if self._entries.get(chat_id) is not entry:
            # Erased meanwhile, or dropped: then it is saved again some day.
            self.snapshots.delete(chat_id)
            return
        entry.saved = len(entry.index), entry.index.vectors.count
        if (mapped := await self.snapshots.read(chat_id)) is not None:
            entry.index = mapped.index

    async def _open(self, chat_id: str, entry: _Entry) -> None:
        """Begin with the snapshot, if there is one, and with the vectors that came after it."""
        saved = await self.snapshots.read(chat_id)
        if saved is not None:
            entry.index, entry.model, entry.next_position = saved.index, saved.model, saved.next_position
            entry.saved = len(saved.index), saved.index.vectors.count
            await self._add_late_vectors(saved)
        entry.is_opened = True

    async def _add_late_vectors(self, saved: SavedIndex) -> None:
        ids = [saved.index.ids[int(each)] for each in saved.index.vectors.without()]
        for start in range(0, len(ids), _IDS):
            query = select(TurnVectorRow.raw_log_id, TurnVectorRow.data).where(
                TurnVectorRow.raw_log_id.in_(ids[start : start + _IDS]), TurnVectorRow.model == saved.model
            )
            async with self.database.reading() as session:
                rows = (await session.execute(query)).all()
            await asyncio.to_thread(saved.index.put_vectors, {row.raw_log_id: row.data for row in rows})

    async def _update(self, chat_id: str, entry: _Entry) -> None:
        entry.is_stale = False
        try:
            await self._extend(chat_id, entry)
        except BaseException:
            # Some of the new turns may be in the index: the next use builds it anew.
            entry.begin_anew(self.gap)
            raise

    async def _reread(self, chat_id: str, entry: _Entry) -> None:
        """Build an index that lacks texts anew; without storage it stays as it is for now. Raises DatabaseAway."""
        fresh = _Entry(ChatIndex(self.gap), entry.model)
        try:
            await self._extend(chat_id, fresh)
        except StorageAway as error:
            logger().warning("archived turns are still not found by words", chat_id=chat_id, reason=str(error))
            entry.lacks_since = time.monotonic()
        else:
            entry.index, entry.next_position, entry.lacks_since = fresh.index, fresh.next_position, fresh.lacks_since

    async def _extend(self, chat_id: str, entry: _Entry) -> None:
        async with self.database.reading() as session:
            # Notes that come while turns are read may be of turns that are not.
            last_note = await session.scalar(select(func.max(NoteRow.position)).where(NoteRow.chat_id == chat_id))
            bounds = select(func.min(TurnRow.time), func.max(TurnRow.position)).where(
                TurnRow.chat_id == chat_id, TurnRow.position >= entry.next_position
            )
            first, last = (await session.execute(bounds)).one()
            if first is not None:
                if not entry.index.follows(first):
                    # A new turn is older than one in the index: build it anew, in order.
                    entry.index, entry.next_position = ChatIndex(self.gap), 0
                await self._add_turns(session, chat_id, entry, last)
            await self._add_notes(session, chat_id, entry, last_note or 0)

    async def _add_turns(self, session: AsyncSession, chat_id: str, entry: _Entry, last: int) -> None:
        columns = (TurnRow.id, TurnRow.time, TurnRow.role, TurnRow.speaker, TurnRow.content, TurnRow.word_count)
        has_vector = and_(TurnVectorRow.raw_log_id == TurnRow.id, TurnVectorRow.model == entry.model)
        query = (
            select(*columns, TurnVectorRow.data, TurnRow.archived)
            .outerjoin(TurnVectorRow, has_vector)
            .where(TurnRow.chat_id == chat_id, TurnRow.kind != MessageKind.HIDDEN.value)
            .where(TurnRow.position >= entry.next_position, TurnRow.position <= last)
            .order_by(TurnRow.time, TurnRow.position)
        )
        rows = await session.stream(query.execution_options(yield_per=_BATCH))
        async for batch in rows.partitions():
            await asyncio.to_thread(entry.index.add, await self._indexed(batch, entry))
        entry.next_position = last + 1

    async def _indexed(self, rows: Sequence[Any], entry: _Entry) -> list[IndexedTurn]:
        """Turns with their texts; one whose archive cannot be read is found by its vector alone. Raises StorageAway."""
        archived = {row.id for row in rows if row.archived is not None}
        texts = await self.texts.of(archived)
        if texts.keys() < archived:
            entry.lacks_since = time.monotonic()
        return [
            IndexedTurn(
                row.id, row.time, row.role, row.speaker, texts.get(row.id, row.content), row.word_count, row.data
            )
            for row in rows
        ]

    async def _add_notes(self, session: AsyncSession, chat_id: str, entry: _Entry, last: int) -> None:
        """Add the notes up to the last one that were made since the index read them before."""
        query = (
            select(NoteRow.position, NoteRow.raw_log_id, NoteRow.kind)
            .where(NoteRow.chat_id == chat_id, NoteRow.position.between(entry.index.last_note + 1, last))
            .order_by(NoteRow.position)
        )
        kinds: defaultdict[str, list[NoteKind]] = defaultdict(list)
        for position, raw_log_id, kind in await session.execute(query):
            kinds[raw_log_id].append(cast("NoteKind", kind))
            entry.index.last_note = position
        entry.index.put_notes(kinds)

    def _evict(self) -> None:
        sizes = {chat_id: entry.index.size_bytes for chat_id, entry in self._entries.items()}
        total = sum(sizes.values())
        for chat_id in list(self._entries)[:-1]:
            if total <= self.limit_bytes:
                return
            if not self._entries[chat_id].lock.locked():
                del self._entries[chat_id]
                total -= sizes[chat_id]

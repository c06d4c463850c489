"""Embeddings for the search: vectors of questions at once, vectors of recorded turns in the background."""

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cachetools import LRUCache
from sqlalchemy import delete, func, insert, select

from memory.lsm.log_changes import LogListener
from memory.lsm.rows import resettle
from memory.lsm.search.index_cache import ChatIndexCache
from memory.lsm.search.questions import without_form
from memory.lsm.tables import TurnRow, TurnVectorRow, wants_vector
from mindbus.logs import logger
from mindbus.sdk.errors import StorageAway
from mindbus.sql.database import Database
from retrieval.embedding.embedder import Embedder, EmbedderFailure

_CACHED = 512
# A search may take up to twice this.
_TIMEOUT_S = 1.0
# After so many failures in a row, no embedding is attempted for a while.
_MAX_FAILURES, _PAUSE_S = 2, 5.0
_BATCH = 32
_QUIET_S, _LONGEST_WAIT_S = 1.0, 30.0
# Turns without a vector are selected in larger portions: the query scans all that have one.
_SELECTED = 512


class QueryEmbeddings:
    """Cached vectors of recent questions; none without an embedder, or while it fails (a circuit breaker)."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self.embedder: Embedder | None = None
        self._cache: LRUCache[str, bytes] = LRUCache(_CACHED)
        self._seconds = seconds
        self._failures, self._failed_at = 0, 0.0

    @property
    def model(self) -> str | None:
        return None if self.embedder is None else self.embedder.space.model

    async def of(self, question: str) -> bytes | None:
        """Vector of what a question is about, little-endian float32; None if there is none in time."""
        question = without_form(question)
        if self.embedder is None:
            return None
        if (cached := self._cache.get(question)) is not None or self._is_paused():
            return cached
        return await self._embed(self.embedder, question)

    async def _embed(self, embedder: Embedder, question: str) -> bytes | None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                vector = (await embedder.query(question)).raw
        except (EmbedderFailure, TimeoutError) as error:
            logger().warning("searched by words alone", reason=str(error) or "the embedder took too long")
            self._failures, self._failed_at = self._failures + 1, self._seconds()
            return None
        self._failures = 0
        self._cache[question] = vector
        return vector

    def _is_paused(self) -> bool:
        return self._failures >= _MAX_FAILURES and self._seconds() - self._failed_at < _PAUSE_S


class _PendingTurn(NamedTuple):
    raw_log_id: str
    chat_id: str
    speaker: str | None
    content: str

    @property
    def text(self) -> str:
        return f"{self.speaker}: {self.content}" if self.speaker else self.content


class TurnBacklog(LogListener):
    """Turns that have no vector yet, embedded in batches; whoever talks or searches comes first."""

    def __init__(
        self,
        database: Database,
        embeddings: QueryEmbeddings,
        indexes: ChatIndexCache,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.database, self.embeddings, self.indexes = database, embeddings, indexes
        self._seconds = seconds
        self._used_at = self._waits_since = -math.inf
        self._has_work = asyncio.Event()
        self._has_work.set()
        self._pending: deque[_PendingTurn] = deque()

    def note_use(self) -> None:
        """Give way to somebody who talks or searches."""
        self._used_at = self._seconds()

    async def until_due(self) -> None:
        """Wait for turns without a vector, then for a second in which nobody talks or searches, half a minute at most.

        Until then they are found by their words; the latest ones, the model is shown anyway.
        """
        await self._has_work.wait()
        while True:
            due_at = min(self._used_at + _QUIET_S, self._waits_since + _LONGEST_WAIT_S)
            if (now := self._seconds()) >= due_at:
                return
            await asyncio.sleep(due_at - now)

    def on_recorded(self, chat_id: str) -> None:
        """Select the pending turns anew where none of this chat is among them."""
        self.note_use()
        if not self._has_work.is_set():
            self._waits_since = self._used_at
        self._has_work.set()
        if all(each.chat_id != chat_id for each in self._pending):
            self._pending.clear()

    def on_erased(self, chat_id: str | None) -> None:
        """Select the pending turns anew; vectors that are being made find their turns gone."""
        self._pending.clear()

    async def delete_other_models(self) -> None:
        """Delete the vectors of other models: their turns are embedded anew."""
        if self.embeddings.model is None:
            return
        others = delete(TurnVectorRow).where(TurnVectorRow.model != self.embeddings.model)
        async with self.database.transaction() as session:
            await session.execute(others.execution_options(synchronize_session=False))

    async def step(self) -> bool:
        """Wait for work, embed a batch; False if there was none. Raises EmbedderFailure, DatabaseAway."""
        await self._has_work.wait()
        embedder = self.embeddings.embedder
        if not self._pending:
            self._has_work.clear()
            if embedder is None:
                return False
            self._pending.extend(await self._select())
        if embedder is None or not self._pending:
            return False
        self._has_work.set()
        batch = [self._pending[number] for number in range(min(_BATCH, len(self._pending)))]
        vectors = await embedder.passages([each.text for each in batch])
        made = {each.raw_log_id: vector.raw for each, vector in zip(batch, vectors, strict=True)}
        await self._store(made, embedder.space.model)
        by_chat: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
        for each in batch:
            by_chat[each.chat_id][each.raw_log_id] = made[each.raw_log_id]
            if self._pending and self._pending[0] is each:
                self._pending.popleft()
        for chat_id, of_chat in by_chat.items():
            self.indexes.put_vectors(chat_id, of_chat)
        return True

    async def _select(self) -> list[_PendingTurn]:
        """Round robin over the chats, so that a large import delays no other; in order of arrival within each.

        Turns of the log come first.
        """
        place = func.row_number().over(partition_by=TurnRow.chat_id, order_by=TurnRow.position).label("place")
        first = (
            select(TurnRow.id, place)
            .outerjoin(TurnVectorRow, TurnVectorRow.raw_log_id == TurnRow.id)
            .where(TurnVectorRow.raw_log_id.is_(None), wants_vector())
            .order_by(TurnRow.archived.is_not(None), place)
            .limit(_SELECTED)
            .subquery()
        )
        query = (
            select(TurnRow.id, TurnRow.chat_id, TurnRow.speaker, TurnRow.content, TurnRow.archived)
            .join(first, first.c.id == TurnRow.id)
            .order_by(TurnRow.archived.is_not(None), first.c.place, TurnRow.chat_id)
        )
        async with self.database.reading() as session:
            rows = (await session.execute(query)).all()
        return await self._pending_turns(rows)

    async def _pending_turns(self, rows: Sequence[Any]) -> list[_PendingTurn]:
        """Turns with their texts; those whose archive cannot be read wait. Raises EmbedderFailure."""
        in_log = [_PendingTurn(row.id, row.chat_id, row.speaker, row.content) for row in rows if row.archived is None]
        try:
            texts = await self.indexes.texts.of([row.id for row in rows if row.archived is not None])
        except StorageAway as error:
            if in_log:
                return in_log
            self._has_work.set()
            raise EmbedderFailure(str(error)) from error
        archived = [_PendingTurn(row.id, row.chat_id, row.speaker, texts[row.id]) for row in rows if row.id in texts]
        return in_log + archived

    async def _store(self, made: dict[str, bytes], model: str) -> None:
        async with self.database.transaction() as session:
            # The lock makes an erasure of these turns wait until their vectors are there to be erased.
            existing = select(TurnRow.id).where(TurnRow.id.in_(made)).with_for_update(key_share=True, read=True)
            embedded = select(TurnVectorRow.raw_log_id).where(TurnVectorRow.raw_log_id.in_(made))
            ids = set(await session.scalars(existing)) - set(await session.scalars(embedded))
            if ids:
                rows = [{"raw_log_id": key, "model": model, "data": made[key]} for key in sorted(ids)]
                await session.execute(insert(TurnVectorRow), rows)
        if ids:
            # In a transaction without locks on turns: an erasure locks episodes first.
            async with self.database.transaction() as session:
                await resettle(session, ids)

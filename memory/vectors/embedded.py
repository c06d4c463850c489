"""Vector index without a server: an SQLite file, and all vectors in memory; owned by one process."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bus_schema.identities import Principal
from bus_schema.kem_query import KemQuery
from memory.vectors.cache import StoredPoint, VectorCache
from memory.vectors.index import IndexAway, IndexOfAnotherSpace, NearKem, VectorPoint
from mindbus.errors import MindBusError
from retrieval.embedding.embedder import EmbeddingSpace

_TABLES = (
    "CREATE TABLE IF NOT EXISTS space (model TEXT NOT NULL, dim INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS points"
    " (kem_id TEXT PRIMARY KEY, version INTEGER NOT NULL, payload TEXT NOT NULL, vector BLOB NOT NULL)",
)


_READ_AT_ONCE = 1000
R = TypeVar("R")


class EmbeddedIndex:
    """VectorIndex over file and cache; one thread runs all work in order, writes are atomic.

    A write whose caller is cancelled still runs to its end: the file is not closed under it.
    """

    is_shared = False

    def __init__(self, path: Path, space: EmbeddingSpace) -> None:
        self.space, self._path = space, path
        self._cache = VectorCache(space.dim)
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vectors")

    async def exists(self) -> bool:
        return await self._on_thread(self._path.exists)

    async def open(self) -> None:
        await self._on_thread(self._open)

    async def write(self, points: Sequence[VectorPoint], deleted_ids: Sequence[str]) -> None:
        await self._on_thread(lambda: self._write(points, deleted_ids))

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        return await self._on_thread(lambda: self._cache.nearest(vector, query, principal, limit))

    async def versions(self) -> dict[str, int]:
        return await self._on_thread(lambda: self._cache.versions())

    async def clear(self) -> None:
        await self._on_thread(self._clear)

    async def close(self) -> None:
        await self._on_thread(self._close)

    async def _on_thread(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._cache = VectorCache(self.space.dim)
        try:
            with self._answering(sqlite3.Error):
                self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
                for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
                    self._connection.execute(f"PRAGMA {pragma}")
            with self._transaction("BEGIN IMMEDIATE") as connection:
                for table in _TABLES:
                    connection.execute(table)
                row = connection.execute("SELECT model, dim FROM space").fetchone()
                if row is None:
                    connection.execute("INSERT INTO space VALUES (?, ?)", (self.space.model, self.space.dim))
                elif EmbeddingSpace(*row) != self.space:
                    message = f"{IndexOfAnotherSpace.__doc__} It is {EmbeddingSpace(*row)}, not {self.space}."
                    raise IndexOfAnotherSpace(message)
        except MindBusError:
            self._close()
            raise
        with self._transaction() as connection:
            (count,) = connection.execute("SELECT count(*) FROM points").fetchone()
            self._cache.reserve(count)
            found = connection.execute("SELECT kem_id, version, payload, vector FROM points")
            while rows := found.fetchmany(_READ_AT_ONCE):
                self._cache.put([StoredPoint(*row) for row in rows])

    def _write(self, points: Sequence[VectorPoint], deleted_ids: Sequence[str]) -> None:
        rows = [
            StoredPoint(point.kem_id, point.version, json.dumps(point.payload), point.vector)
            for point in {point.kem_id: point for point in points}.values()
        ]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)", rows)
            connection.executemany("DELETE FROM points WHERE kem_id = ?", [(kem_id,) for kem_id in deleted_ids])
        self._cache.put(rows)
        for kem_id in deleted_ids:
            self._cache.drop(kem_id)

    def _clear(self) -> None:
        """Replace the file, which may be of another space or broken."""
        self._close()
        with self._answering(OSError):
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        self._open()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _transaction(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        if self._connection is None:
            raise IndexAway(f"{self._path} is not open")
        with self._answering(sqlite3.Error), self._connection as connection:
            connection.execute(begin)
            yield connection

    @contextmanager
    def _answering(self, failure: type[Exception]) -> Iterator[None]:
        try:
            yield
        except failure as error:
            raise IndexAway(f"{self._path}: {error}") from error

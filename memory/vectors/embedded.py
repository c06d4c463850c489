"""Vector index without a server: an SQLite file, and all vectors in memory; owned by one process."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from bus_schema.kem_query import KemQuery
from memory.embedding.embedder import EmbeddingSpace
from memory.vectors.cache import VectorCache
from memory.vectors.index import IndexAway, IndexOfAnotherSpace, NearKem, VectorPoint
from mindbus.principal import Principal

_TABLES = (
    "CREATE TABLE IF NOT EXISTS space (model TEXT NOT NULL, dim INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS points"
    " (kem_id TEXT PRIMARY KEY, version INTEGER NOT NULL, payload TEXT NOT NULL, vector BLOB NOT NULL)",
)


class VectorFile:
    """SQLite file of the points; writes are atomic."""

    def __init__(self, path: Path, space: EmbeddingSpace) -> None:
        self._path, self._space = path, space
        self._connection: sqlite3.Connection | None = None

    def exists(self) -> bool:
        """True if the file exists."""
        return self._path.exists()

    def open(self) -> None:
        """Open or create the file. Raises IndexAway, IndexOfAnotherSpace."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._prepare(self._connection)
        except sqlite3.Error as error:
            self.close()
            raise IndexAway(f"{self._path}: {error}") from error

    def write(self, points: Sequence[VectorPoint], gone: Sequence[str]) -> None:
        """Raises IndexAway."""
        rows = [(point.kem_id, point.version, json.dumps(point.payload), point.vector) for point in points]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)", rows)
            connection.executemany("DELETE FROM points WHERE kem_id = ?", [(kem_id,) for kem_id in gone])

    def read(self) -> Iterator[VectorPoint]:
        """All points. Raises IndexAway."""
        with self._transaction() as connection:
            for kem_id, version, payload, vector in connection.execute("SELECT * FROM points"):
                yield VectorPoint(kem_id, version, vector, json.loads(payload))

    def clear(self) -> None:
        """Replace the file, which may be of another space or broken, by an empty one. Raises IndexAway."""
        self.close()
        try:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            raise IndexAway(f"{self._path}: {error}") from error
        self.open()

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for table in _TABLES:
            connection.execute(table)
        known = connection.execute("SELECT model, dim FROM space").fetchone()
        if known is None:
            connection.execute("INSERT INTO space VALUES (?, ?)", (self._space.model, self._space.dim))
        connection.execute("COMMIT")
        if known is not None and EmbeddingSpace(*known) != self._space:
            self.close()
            raise IndexOfAnotherSpace(
                f"{IndexOfAnotherSpace.__doc__} It is {EmbeddingSpace(*known)}, not {self._space}."
            )

    def _transaction(self) -> "_Transaction":
        if self._connection is None:
            raise IndexAway(f"{self._path} is not open")
        return _Transaction(self._connection, self._path)


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def __enter__(self) -> sqlite3.Connection:
        self._run("BEGIN")
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            self._run("COMMIT")
            return
        if self._connection.in_transaction:
            self._run("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise IndexAway(f"{self._path}: {error}") from error

    def _run(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except sqlite3.Error as error:
            raise IndexAway(f"{self._path}: {error}") from error


P = ParamSpec("P")
R = TypeVar("R")


class EmbeddedIndex:
    """VectorIndex over file and cache; one thread runs all work in order.

    A write whose caller is cancelled still runs to its end: the file is not closed under it.
    """

    def __init__(self, path: Path, space: EmbeddingSpace) -> None:
        self.space = space
        self._file = VectorFile(path, space)
        self._cache = VectorCache(space.dim)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vectors")

    async def exists(self) -> bool:
        return await self._on_thread(self._file.exists)

    async def open(self) -> None:
        await self._on_thread(self._open)

    async def write(self, points: Sequence[VectorPoint], gone: Sequence[str]) -> None:
        """Atomic."""
        await self._on_thread(self._write, points, gone)

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        return await self._on_thread(lambda: self._cache.nearest(vector, query, principal, limit))

    async def versions(self) -> dict[str, int]:
        return await self._on_thread(lambda: self._cache.versions())

    async def clear(self) -> None:
        await self._on_thread(self._clear)

    async def close(self) -> None:
        await self._on_thread(self._file.close)

    async def _on_thread(self, work: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **named))

    def _open(self) -> None:
        self._file.open()
        self._cache = VectorCache(self.space.dim)
        for point in self._file.read():
            self._cache.put(point)

    def _clear(self) -> None:
        self._file.clear()
        self._cache = VectorCache(self.space.dim)

    def _write(self, points: Sequence[VectorPoint], gone: Sequence[str]) -> None:
        self._file.write(points, gone)
        for point in points:
            self._cache.put(point)
        for kem_id in gone:
            self._cache.drop(kem_id)

"""Group commit on SQLite: transactions that come together share one COMMIT, each within a savepoint of its own."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import await_only

from mindbus.sql.errors import DatabaseAway
from mindbus.sql.spans import namespace_of, statement_span
from mindbus.sql.statements import BUSY_TIMEOUT_S, begin_at_once, driver_of, execute

T = TypeVar("T")
_HOLDS_TURN = "mindbus_holds_turn"
# The event loop stands still meanwhile; under WAL nobody who reads waits, except while a file is opened or recovered.
_READ_PATIENCE_MS = 500


class WriteQueue:
    """Writers of one process take turns; SQLite alone would let them poll at growing intervals.

    A writer that has waited in vain tries without a turn: SQLite itself locks.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._turn = asyncio.Lock()

    def serve(self, engine: AsyncEngine) -> None:
        """End the turns of an engine's connections when they return to its pool."""
        event.listen(engine.sync_engine.pool, "checkin", self._end)

    def wait(self, connection: Connection) -> None:
        """Wait for the turn of a connection, which ends when the connection returns to the pool."""
        info = connection.connection.info
        if not info.get(_HOLDS_TURN):
            info[_HOLDS_TURN] = await_only(self.begin())

    async def begin(self) -> bool:
        """Wait for a turn; whether it has come."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._turn.acquire()
        except TimeoutError:
            return False

    def end(self, *, has_come: bool) -> None:
        """End a turn, if it has come."""
        if has_come:
            self._turn.release()

    def _end(self, _connection: Any, record: Any) -> None:
        self.end(has_come=record.info.pop(_HOLDS_TURN, False))


@dataclass(eq=False, slots=True)
class _Group:
    """Transactions with a common COMMIT; `committed` ends with it."""

    has_turn: bool
    committed: "asyncio.Future[None]" = field(init=False)
    culprit: BaseException | None = None

    def __post_init__(self) -> None:
        self.committed = asyncio.get_running_loop().create_future()
        # Members that were cancelled do not ask for it.
        self.committed.add_done_callback(lambda done: done.cancelled() or done.exception())

    def fail(self, reason: object) -> None:
        if not self.committed.done():
            away = DatabaseAway(f"database: {reason}")
            away.__cause__ = reason if isinstance(reason, BaseException) else None
            self.committed.set_exception(away)


class GroupedConnections:
    """A process's own connections to a SQLite file for short work: one that writes in groups, one that reads.

    Statements run in place, on the event loop: a few rows take less time than a round trip to a thread, so this is no
    place for a scan. COMMIT, which waits for the disk, runs in the writer's thread, as does a BEGIN that has to wait
    for another process. Transactions that wait while one group is committed are the next group.
    """

    def __init__(self, engine: Engine, turns: WriteQueue, patience_s: float) -> None:
        self.engine, self.turns, self._patience_s = engine, turns, patience_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite writer")
        self._lock = asyncio.Lock()
        self._entering = 0
        self._opening = asyncio.Lock()
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._group: _Group | None = None
        self._committing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[Connection]:
        """A transaction within a group, committed when the block has been left; an error undoes it alone.

        Nobody else writes meanwhile. An error, too, leaves only after the commit, since it may be due to what others of
        the group have written. Raises DatabaseAway.
        """
        await self._enter()
        failure: Exception | None = None
        try:
            writer = await self._open_writer()
            group = await self._open_group()
            raw = driver_of(writer)
            try:
                execute(raw, "SAVEPOINT message")
                yield writer
                execute(raw, "RELEASE message")
            except BaseException as error:
                self._undo(raw, group, error)
                if not isinstance(error, Exception):
                    raise
                failure = error
        finally:
            self._lock.release()
        await _end_of(group, failure, namespace_of(self.engine))

    async def read(self, job: Callable[[Connection], T]) -> T:
        """The result of a short read."""
        if self._reader is None:
            async with self._opening:
                if self._reader is None:
                    await self._in_thread(self._connect_reader)
        assert self._reader is not None
        return job(self._reader)

    async def close(self) -> None:
        """Wait for the group that is being committed, then close; the next use opens anew."""
        while True:
            async with self._lock:
                committing = self._committing
                if self._group is None or committing is None or committing.done():
                    self._close()
                    return
            await asyncio.wait([committing])

    def _close(self) -> None:
        if self._group is not None:
            self._group.fail("closed before the commit")
            self._end_group(self._group)
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.invalidate()
                connection.close()
        self._writer = self._reader = None
        self.engine.dispose()
        self._thread.shutdown(wait=False)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite writer")

    async def _enter(self) -> None:
        # Where nobody waits, a timer would cost as much as a statement.
        is_free = not self._lock.locked() and not self._entering
        self._entering += 1
        try:
            async with asyncio.timeout(None if is_free else self._patience_s):
                await self._lock.acquire()
        except TimeoutError as error:
            raise DatabaseAway("database: another transaction takes too long") from error
        finally:
            self._entering -= 1

    async def _open_writer(self) -> Connection:
        if self._writer is None:
            await self._in_thread(self._connect_writer)
        assert self._writer is not None
        return self._writer

    def _connect_writer(self) -> None:
        writer = self.engine.connect()
        writer.exec_driver_sql("PRAGMA busy_timeout=0")
        # Savepoints keep what they may have to undo; above 64 KiB that would be a file for every group.
        writer.exec_driver_sql("PRAGMA temp_store=MEMORY")
        self._writer = writer

    def _connect_reader(self) -> None:
        reader = self.engine.connect()
        reader.exec_driver_sql("PRAGMA query_only=ON")
        reader.exec_driver_sql(f"PRAGMA busy_timeout={_READ_PATIENCE_MS}")
        self._reader = reader

    async def _open_group(self) -> _Group:
        """The group to join: the first of a group begins it."""
        if self._group is None:
            has_turn = await self.turns.begin()
            try:
                if not begin_at_once(driver_of(self._writer)):
                    await self._in_thread(self._begin)
            except BaseException as error:
                self._roll_back()
                self.turns.end(has_come=has_turn)
                if isinstance(error, sqlite3.Error):
                    raise DatabaseAway(f"database: {error}") from error
                raise
            self._group = _Group(has_turn)
            self._committing = asyncio.create_task(self._commit(self._group), name="group commit")
        return self._group

    def _begin(self) -> None:
        """Begin once other processes let it."""
        raw = driver_of(self._writer)
        raw.execute(f"PRAGMA busy_timeout={1000 * BUSY_TIMEOUT_S}")
        try:
            raw.execute("BEGIN IMMEDIATE")
        finally:
            raw.execute("PRAGMA busy_timeout=0")

    async def _commit(self, group: _Group) -> None:
        # Everybody who waits already is before it in the lock's queue, so in the group.
        async with self._lock:
            if self._group is not group:
                return
            try:
                await self._in_thread(lambda: driver_of(self._writer).execute("COMMIT"))
                group.committed.set_result(None)
            except BaseException as error:
                group.fail(error)
                self._roll_back()
                if not isinstance(error, sqlite3.Error):
                    raise
            finally:
                self._end_group(group)

    def _undo(self, raw: sqlite3.Connection, group: _Group, error: BaseException) -> None:
        """Undo one transaction; where SQLite has undone the whole group, as on a full disk, the group fails."""
        with suppress(sqlite3.Error):
            if raw.in_transaction:
                raw.execute("ROLLBACK TO message")
                raw.execute("RELEASE message")
                return
        self._roll_back()
        group.culprit = error
        group.fail(error)
        self._end_group(group)

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error, DatabaseAway):
            raw = driver_of(self._writer)
            if raw.in_transaction:
                raw.execute("ROLLBACK")

    def _end_group(self, group: _Group) -> None:
        self._group = None
        self.turns.end(has_come=group.has_turn)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """The result of work in the writer's thread, which a cancellation waits for."""
        running = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                # Whoever is in a hurry cancels again and again; what the thread has begun must be known to have ended.
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running])
            raise


async def _end_of(group: _Group, failure: Exception | None, namespace: str) -> None:
    """Wait for the commit. Raises the failure of this transaction, unless the group has failed by another's."""
    try:
        with statement_span("COMMIT", namespace=namespace):
            await asyncio.shield(group.committed)
    except DatabaseAway as away:
        if group.culprit is None or group.culprit is not failure:
            raise away from failure
    if failure is not None:
        raise failure

"""Database of one service: SQLite for one machine, PostgreSQL, with timeouts, for many, by URL."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.rows import Row
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.util import await_only

from mindbus.errors import TemporaryFailure

# Longer than any of our statements takes, shorter than a request waits.
ANSWER_WITHIN_S = 10.0

# Without them TCP notices only after hours that the other machine has vanished.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

CONNECT_OPTIONS: dict[str, Any] = {"connect_timeout": 5, "tcp_user_timeout": 20_000, **_KEEPALIVE}

# The server ends statements that nobody waits for any more, and releases the locks of a client that is frozen in a
# transaction or has vanished.
_SERVER_SETTINGS = {
    "statement_timeout": f"{ANSWER_WITHIN_S:g}s",
    "idle_in_transaction_session_timeout": "60s",
    # A generic plan is wrong where one value has three rows and another a hundred thousand.
    "plan_cache_mode": "force_custom_plan",
    **{f"tcp_{name}": seconds for name, seconds in _KEEPALIVE.items()},
}


class PostgresTimeout(psycopg.OperationalError):
    """PostgreSQL does not answer; the last statement may or may not have been executed."""


class TimedConnection(psycopg.AsyncConnection[Row]):
    """A connection that gives up a server which does not answer; psycopg itself would wait for ever."""

    timeout_s = ANSWER_WITHIN_S

    async def wait(self, *args: Any, **options: Any) -> Any:
        """Raises PostgresTimeout, after which the connection is closed."""
        try:
            # psycopg then tries for some seconds to cancel the statement on the server.
            async with asyncio.timeout(self.timeout_s):
                return await super().wait(*args, **options)
        except TimeoutError as error:
            self.pgconn.finish()
            raise PostgresTimeout(str(PostgresTimeout.__doc__)) from error


def session_options(schema: str, *, without_limits: bool = False) -> str:
    """Server settings of a connection, as libpq options; `without_limits`, for migrations, has no timeouts."""
    settings = {"search_path": schema} if without_limits else {"search_path": schema, **_SERVER_SETTINGS}
    return " ".join(f"-c{name}={value}" for name, value in settings.items())


_HOLDS_TURN = "mindbus_holds_turn"


class WriteQueue:
    """Writers of one process take turns; SQLite alone would let them poll at growing intervals.

    A writer that has waited in vain tries without a turn: SQLite itself locks.
    """

    def __init__(self, engine: AsyncEngine, patience_s: float) -> None:
        self._patience_s = patience_s
        self._turn = asyncio.Lock()
        event.listen(engine.sync_engine.pool, "checkin", self._end)

    def wait(self, connection: Connection) -> None:
        """Wait for the turn of a connection, which ends when the connection returns to the pool."""
        info = connection.connection.info
        if not info.get(_HOLDS_TURN):
            info[_HOLDS_TURN] = await_only(self._begin())

    async def _begin(self) -> bool:
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._turn.acquire()
        except TimeoutError:
            return False

    def _end(self, _connection: Any, record: Any) -> None:
        if record.info.pop(_HOLDS_TURN, False):
            self._turn.release()


_POOL_SIZE = 5
# Beside each handler's transaction a short read, the outbox, the clockwork, the writer's lock.
_POOL_OVERFLOW = 15
_POOL_TIMEOUT_S = 10
_BUSY_TIMEOUT_S = 30
_BUSY_PAUSE_S = 0.02
# Of what somebody has deleted, no byte stays in the file, however SQLite was built.
_PRAGMAS = MappingProxyType({"journal_mode": "WAL", "foreign_keys": "ON", "synchronous": "FULL", "secure_delete": "ON"})


class DatabaseAway(TemporaryFailure):
    """The database did not answer; what was being committed may have been committed, or not."""


class NoMessageAtHand(RuntimeError):
    """`Database.session` belongs to the message being handled; elsewhere use `transaction()` or `reading()`."""


class Database:
    """Sessions on one service's tables; `schema` is its PostgreSQL schema, SQLite has a file a service.

    `pragmas` are for SQLite, where the service has others than the usual ones.
    """

    def __init__(self, url: str, schema: str, pragmas: Mapping[str, str | int] = _PRAGMAS) -> None:
        self.url = make_url(url)
        self.schema = schema
        self._pragmas = pragmas
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = self._sqlite() if self.is_sqlite else self._postgresql()
        self._sessions = async_sessionmaker(self.engine, expire_on_commit=False)
        self._ambient: ContextVar[AsyncSession | None] = ContextVar(f"session of {schema}", default=None)

    @property
    def session(self) -> AsyncSession:
        """The transaction of the message being handled; it commits with the message's outcome, or not at all."""
        session = self._ambient.get()
        if session is None:
            raise NoMessageAtHand
        return session

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A short transaction of its own, committed on leaving. Raises DatabaseAway."""
        with answering():
            async with self._sessions() as session, session.begin():
                yield session

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        """A transaction that only reads, so that on SQLite it never waits for the writer. Raises DatabaseAway."""
        with answering():
            async with self._sessions() as session:
                await session.connection(execution_options={"mindbus_read_only": True})
                yield session

    @asynccontextmanager
    async def at_hand(self) -> AsyncIterator[AsyncSession]:
        """A transaction that `session` returns to everything called within the block. Raises DatabaseAway."""
        async with self.transaction() as session:
            token = self._ambient.set(session)
            try:
                yield session
            finally:
                self._ambient.reset(token)

    async def dispose(self) -> None:
        await self.engine.dispose()

    def _sqlite(self) -> AsyncEngine:
        if self.url.database:
            Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_async_engine(self.url, connect_args={"timeout": _BUSY_TIMEOUT_S})
        event.listen(engine.sync_engine, "connect", self._configure_sqlite)
        turns = WriteQueue(engine, _BUSY_TIMEOUT_S)
        event.listen(engine.sync_engine, "begin", lambda connection: _begin_sqlite(connection, turns))
        return engine

    def _configure_sqlite(self, connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself: _begin_sqlite says which kind.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma, value in self._pragmas.items():
            _set_pragma(cursor, f"PRAGMA {pragma}={value}")
        cursor.close()

    def _postgresql(self) -> AsyncEngine:
        connecting = CONNECT_OPTIONS | {"options": session_options(self.schema)}
        return create_async_engine(
            self.url,
            connect_args=connecting | {"async_creator_fn": TimedConnection.connect},
            pool_pre_ping=True,
            pool_size=_POOL_SIZE,
            max_overflow=_POOL_OVERFLOW,
            pool_timeout=_POOL_TIMEOUT_S,
        )

    def run_on_admin_connection(self, work: Any) -> None:
        """Run `work(connection)` on a plain synchronous connection, for migrations."""
        url = self.url.set(drivername="sqlite") if self.is_sqlite else self.url
        options = (
            {} if self.is_sqlite else CONNECT_OPTIONS | {"options": session_options(self.schema, without_limits=True)}
        )
        engine = create_engine(url, connect_args=options)
        try:
            with engine.begin() as connection:
                if not self.is_sqlite:
                    _create_schema(connection, self.schema)
                work(connection)
        finally:
            engine.dispose()


@contextmanager
def answering() -> Iterator[None]:
    """Raises DatabaseAway where the database is away, busy or breaks off."""
    try:
        yield
    except (DBAPIError, NoneFree) as error:
        if isinstance(error, OperationalError | InterfaceError | NoneFree) or error.connection_invalidated:
            raise DatabaseAway(f"database: {getattr(error, 'orig', error)}") from error
        raise


def _set_pragma(cursor: Any, statement: str) -> None:
    """Execute a PRAGMA within the busy timeout.

    SQLite does not apply its own timeout to `journal_mode`: of several connections that open a new file at once and
    switch it to WAL, all but one would fail immediately with "database is locked".
    """
    give_up_at = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
        await_only(asyncio.sleep(_BUSY_PAUSE_S))


def _begin_sqlite(connection: Connection, turns: WriteQueue) -> None:
    # A deferred transaction that turns writer later fails at once under WAL; an immediate one waits its turn.
    if connection.get_execution_options().get("mindbus_read_only", False):
        connection.exec_driver_sql("BEGIN DEFERRED")
    else:
        turns.wait(connection)
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _create_schema(connection: Connection, schema: str) -> None:
    # Two instances that start together must not both create it.
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('mindbus migrations'))"))
    connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))

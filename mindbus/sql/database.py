"""Database of one service: SQLite for one machine, PostgreSQL, with timeouts, for many, by URL."""

import asyncio
import math
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from mindbus.sql.errors import DatabaseDamaged, answering, is_damage, leave_standby
from mindbus.sql.groups import GroupedConnections, WriteQueue
from mindbus.sql.spans import statement_span, trace_statements
from mindbus.sql.statements import BUSY_TIMEOUT_S, set_pragma

T = TypeVar("T")

_LOG_WITHIN_S = 0.2
# To look through a larger one would keep its service from starting for seconds; `mindbus doctor` does it all the same.
QUICKLY_CHECKED_BYTES = 512 * 1024**2
_POOL_SIZE = 5
# Beside each handler's transaction a short read, the outbox, the clockwork, the writer's lock.
_POOL_OVERFLOW = 15
_POOL_TIMEOUT_S = 10
# Of what somebody has deleted, no byte stays in the file, however SQLite was built.
_PRAGMAS = MappingProxyType({"journal_mode": "WAL", "foreign_keys": "ON", "synchronous": "FULL", "secure_delete": "ON"})


class NoMessageAtHand(RuntimeError):
    """`Database.session` belongs to the message being handled; elsewhere use `transaction()` or `reading()`."""


class JobsOnly(RuntimeError):
    """The transaction of this message has begun with `Database.run`; `Database.session` would be another one."""


class AmbientTransaction:
    """The transaction of the message at hand, begun by whatever is used first: a session, or a job.

    On SQLite jobs are committed in groups with those of other messages.
    """

    def __init__(self, database: "Database", ending: AsyncExitStack) -> None:
        self._database, self._ending = database, ending
        self._session: AsyncSession | None = None
        self._connection: Connection | None = None
        self._rows: Session | None = None
        self.after_commit: list[Callable[[], object]] = []

    @property
    def has_begun(self) -> bool:
        """Whether anything has used it."""
        return self._session is not None or self._connection is not None

    @property
    def session(self) -> AsyncSession:
        """Raises JobsOnly."""
        if self._connection is not None:
            raise JobsOnly(JobsOnly.__doc__)
        if self._session is None:
            self._session = session = self._database.new_session()

            async def commit(failure: type[BaseException] | None, *_error: object) -> None:
                if failure is None:
                    with statement_span("COMMIT", self._database.url.get_backend_name(), self._database.schema):
                        await session.commit()

            # Its end, which rolls back what is not committed, outlives a cancellation.
            self._ending.push_async_exit(session)
            self._ending.push_async_exit(commit)
        return self._session

    async def run(self, job: Callable[[Connection], T]) -> T:
        """Run short work within the transaction."""
        groups = self._database.groups
        if groups is None or self._session is not None:
            return await (await self.session.connection()).run_sync(job)
        if self._connection is None:
            self._connection = await self._ending.enter_async_context(groups.savepoint())
        return job(self._connection)

    async def run_rows(self, job: Callable[[Session], T]) -> T:
        """Run short work on mapped rows within the transaction."""
        if self._database.groups is None or self._session is not None:
            return await self.session.run_sync(job)

        def within(connection: Connection) -> T:
            # The transaction is not this session's to end.
            self._rows = self._rows or Session(connection, join_transaction_mode="control_fully")
            found = job(self._rows)
            self._rows.flush()
            return found

        return await self.run(within)


class Database:
    """Sessions on one service's tables; `schema` is its PostgreSQL schema, SQLite has a file a service.

    `pragmas` are for SQLite, where the service has others than the usual ones.
    """

    def __init__(self, url: str, schema: str, pragmas: Mapping[str, str | int] = _PRAGMAS) -> None:
        self.url = make_url(url)
        self.schema = schema
        self._pragmas = pragmas
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.groups: GroupedConnections | None = None
        self.engine = self._sqlite() if self.is_sqlite else self._postgresql()
        trace_statements(self.engine.sync_engine, schema)
        self.new_session = async_sessionmaker(self.engine, expire_on_commit=False)
        self._ambient: ContextVar[AmbientTransaction | None] = ContextVar(f"transaction of {schema}", default=None)

    @property
    def name(self) -> str:
        """The file, or the schema with the address, without a password."""
        shown = self.url.render_as_string(hide_password=True)
        return str(self.url.database) if self.is_sqlite else f"{self.schema} at {shown}"

    @property
    def session(self) -> AsyncSession:
        """The transaction of the message being handled; it commits with the message's outcome, or not at all."""
        return self._at_hand().session

    async def run(self, job: Callable[[Connection], T]) -> T:
        """Run short work of a few rows within the transaction of the message being handled."""
        return await self._at_hand().run(job)

    async def run_rows(self, job: Callable[[Session], T]) -> T:
        """As `run`, on mapped rows, which are written when the job is done."""
        return await self._at_hand().run_rows(job)

    def after_commit(self, notify: Callable[[], object]) -> None:
        """Call something once the transaction of the message being handled is committed, if it is."""
        self._at_hand().after_commit.append(notify)

    async def write(self, job: Callable[[Connection], T]) -> T:
        """Run short work of a few rows in a transaction of its own. Raises DatabaseAway."""
        with answering(self.name):
            if self.groups is not None:
                async with self.groups.savepoint() as connection:
                    return job(connection)
            async with self.transaction() as session:
                return await (await session.connection()).run_sync(job)

    async def read(self, job: Callable[[Connection], T]) -> T:
        """Read a few rows, by their keys. Raises DatabaseAway."""
        with answering(self.name):
            if self.groups is not None:
                return await self.groups.read(job)
            async with self.reading() as session:
                return await (await session.connection()).run_sync(job)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """A short transaction of its own, committed on leaving. Raises DatabaseAway."""
        with answering(self.name):
            async with self.new_session() as session, session.begin():
                yield session

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        """A transaction that only reads, so that on SQLite it never waits for the writer. Raises DatabaseAway."""
        with answering(self.name):
            async with self.new_session() as session:
                await session.connection(execution_options={"mindbus_read_only": True})
                yield session

    @asynccontextmanager
    async def at_hand(self) -> AsyncIterator[AmbientTransaction]:
        """A transaction that `session` and `run` use within the block, committed on leaving. Raises DatabaseAway."""
        with answering(self.name):
            async with AsyncExitStack() as ending:
                transaction = AmbientTransaction(self, ending)
                token = self._ambient.set(transaction)
                try:
                    yield transaction
                finally:
                    self._ambient.reset(token)
        for notify in transaction.after_commit:
            notify()

    def require_sound(self, most_bytes: float = math.inf) -> None:
        """Look through a SQLite file of at most so many bytes, a second for some 500 MB. Raises DatabaseDamaged."""
        file = Path(self.url.database or "")
        if not (self.is_sqlite and file.is_file() and file.stat().st_size <= most_bytes):
            return
        try:
            with closing(sqlite3.connect(file, timeout=BUSY_TIMEOUT_S)) as connection:
                (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            found = error
        if found != "ok":
            raise DatabaseDamaged(self.name, found)

    async def truncate_log(self) -> bool:
        """Write SQLite's log back and empty it: it keeps the text of what was deleted, and what only changed once.

        False while somebody reads or writes: try again later.
        """
        return not self.is_sqlite or await asyncio.to_thread(self._truncate_log)

    def _truncate_log(self) -> bool:
        with (
            suppress(sqlite3.OperationalError),
            closing(sqlite3.connect(str(self.url.database), timeout=_LOG_WITHIN_S)) as connection,
        ):
            is_busy, *_pages = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not is_busy
        return False

    async def dispose(self) -> None:
        if self.groups is not None:
            await self.groups.close()
        await self.engine.dispose()

    def _at_hand(self) -> AmbientTransaction:
        if (ambient := self._ambient.get()) is None:
            raise NoMessageAtHand
        return ambient

    def _sqlite(self) -> AsyncEngine:
        if self.url.database:
            Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_async_engine(self.url, connect_args={"timeout": BUSY_TIMEOUT_S})
        event.listen(engine.sync_engine, "connect", self._configure_sqlite)
        turns = WriteQueue(BUSY_TIMEOUT_S)
        turns.serve(engine)
        event.listen(engine.sync_engine, "begin", lambda connection: _begin_sqlite(connection, turns))
        plain, options = self.url.set(drivername="sqlite"), {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}
        own = create_engine(plain, connect_args=options, poolclass=NullPool)
        event.listen(own, "connect", self._configure_sqlite)
        trace_statements(own, self.schema)
        self.groups = GroupedConnections(own, turns, BUSY_TIMEOUT_S)
        return engine

    def _configure_sqlite(self, connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself: _begin_sqlite says which kind.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma, value in self._pragmas.items():
            set_pragma(cursor, f"PRAGMA {pragma}={value}")
        cursor.close()

    def _postgresql(self) -> AsyncEngine:
        # Imported here: the driver weighs 8 MB.
        from mindbus.sql.postgresql import CONNECT_OPTIONS, TimedConnection, session_options

        connecting = CONNECT_OPTIONS | {"options": session_options(self.schema)}
        engine = create_async_engine(
            self.url,
            connect_args=connecting | {"async_creator_fn": TimedConnection.connect},
            pool_pre_ping=True,
            pool_size=_POOL_SIZE,
            max_overflow=_POOL_OVERFLOW,
            pool_timeout=_POOL_TIMEOUT_S,
        )
        event.listen(engine.sync_engine, "handle_error", leave_standby)
        return engine

    def run_on_admin_connection(self, work: Any) -> None:
        """Run `work(connection)` on a plain synchronous connection, for migrations."""
        url, own = (self.url.set(drivername="sqlite"), {}) if self.is_sqlite else (self.url, self._admin_options())
        engine = create_engine(url, connect_args=own)
        try:
            with engine.begin() as connection:
                if not self.is_sqlite:
                    # Two instances that start together must not both create it.
                    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('mindbus migrations'))"))
                    # Whoever has been given a schema need not be allowed to make one.
                    known = text("SELECT 1 FROM pg_namespace WHERE nspname = :schema")
                    if connection.scalar(known, {"schema": self.schema}) is None:
                        connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{self.schema}"'))
                work(connection)
        finally:
            engine.dispose()

    def _admin_options(self) -> dict[str, Any]:
        from mindbus.sql.postgresql import CONNECT_OPTIONS, session_options

        return CONNECT_OPTIONS | {"options": session_options(self.schema, without_limits=True)}


def _begin_sqlite(connection: Connection, turns: WriteQueue) -> None:
    # A deferred transaction that turns writer later fails at once under WAL; an immediate one waits its turn.
    if connection.get_execution_options().get("mindbus_read_only", False):
        connection.exec_driver_sql("BEGIN DEFERRED")
    else:
        turns.wait(connection)
        connection.exec_driver_sql("BEGIN IMMEDIATE")

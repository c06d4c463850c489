"""Checkpoints of LangGraph: SQLite on one machine, PostgreSQL for many."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg import AsyncConnection, OperationalError
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Identifier
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.engine import URL, make_url

from mindbus.sql.database import CONNECT_OPTIONS, TimedConnection, session_options

# A step ends within hours: an older thread belongs to no step.
KEPT = timedelta(days=7)

# The database is unavailable or busy; try again.
CheckpointTrouble = (sqlite3.OperationalError, OperationalError)

_POOL_SIZE = 4
_POOL_TIMEOUT_S = 10
_LOCK_POLL_S = 0.2
# Epoch of UUID timestamps (RFC 9562).
_GREGORIAN = datetime(1582, 10, 15, tzinfo=UTC)


@asynccontextmanager
async def open_checkpoints(database_url: str, service: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """The checkpointer of one service: a file, or a schema in the shared PostgreSQL."""
    url = make_url(database_url)
    opening = _sqlite(url) if url.get_backend_name() == "sqlite" else _postgresql(url, service)
    async with opening as saver:
        yield saver


async def forget_before(saver: BaseCheckpointSaver[Any], moment: datetime) -> int:
    """Delete the threads without a checkpoint since a moment; returns their number."""
    cutoff: RunnableConfig = {"configurable": {"checkpoint_id": _first_id_of(moment)}}
    old = {found.config["configurable"]["thread_id"] async for found in saver.alist(None, before=cutoff, limit=1000)}
    for thread_id in old:
        await saver.adelete_thread(thread_id)
    return len(old)


@asynccontextmanager
async def _sqlite(url: URL) -> AsyncIterator[AsyncSqliteSaver]:
    path = url.database or ":memory:"
    if path != ":memory:":
        await asyncio.to_thread(Path(path).parent.mkdir, parents=True, exist_ok=True)
    async with aiosqlite.connect(path, timeout=30) as connection:
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
        yield saver


@asynccontextmanager
async def _postgresql(url: URL, service: str) -> AsyncIterator[AsyncPostgresSaver]:
    schema = f"checkpoints_{service}"
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with await AsyncConnection.connect(address, autocommit=True, **CONNECT_OPTIONS) as connection:
        await _locked(connection, schema, lambda: _prepare(connection, address, schema))
    async with AsyncConnectionPool(
        address,
        kwargs=_options(schema),
        min_size=1,
        max_size=_POOL_SIZE,
        open=False,
        timeout=_POOL_TIMEOUT_S,
        connection_class=_DictConnection,
        check=AsyncConnectionPool.check_connection,
    ) as pool:
        yield AsyncPostgresSaver(pool)


# The pool is invariant in the class of its connections.
_DictConnection: type[AsyncConnection[DictRow]] = TimedConnection[DictRow]


def _options(schema: str, *, without_limits: bool = False) -> dict[str, Any]:
    # The saver requires these of every connection.
    own = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return own | CONNECT_OPTIONS | {"options": session_options(schema, without_limits=without_limits)}


async def _locked(connection: AsyncConnection[Any], name: str, work: Callable[[], Awaitable[None]]) -> None:
    # Polled: an instance that waited inside the statement would hold a snapshot, for whose end CREATE INDEX
    # CONCURRENTLY in the other instance's set-up waits.
    while not await _try_lock(connection, name):  # noqa: ASYNC110  # there is no event to wait for
        await asyncio.sleep(_LOCK_POLL_S)
    try:
        await work()
    finally:
        await connection.execute("SELECT pg_advisory_unlock(hashtext(%s))", (name,))


async def _try_lock(connection: AsyncConnection[Any], name: str) -> bool:
    cursor = await connection.execute("SELECT pg_try_advisory_lock(hashtext(%s))", (name,))
    row = await cursor.fetchone()
    return bool(row and row[0])


async def _prepare(connection: AsyncConnection[Any], address: str, schema: str) -> None:
    await connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)))
    async with await AsyncConnection.connect(address, **_options(schema, without_limits=True)) as own:
        await AsyncPostgresSaver(own).setup()


def _first_id_of(moment: datetime) -> str:
    """The smallest UUID version 6 of a moment: checkpoint ids sort by time."""
    ticks = (moment.astimezone(UTC) - _GREGORIAN) // timedelta(microseconds=1) * 10
    high = f"{ticks:015x}"
    return f"{high[:8]}-{high[8:12]}-6{high[12:]}-8000-000000000000"

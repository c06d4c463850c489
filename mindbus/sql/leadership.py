"""The single writer of a database, kept by a lock that dies with its holder."""

import asyncio
import os
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from mindbus.bus.worker import Leadership
from mindbus.files.disk import lock_file
from mindbus.logs import logger
from mindbus.sql.database import Database

_POLL_S = 0.5
_BEAT_S = 2.0
_BEAT_WITHIN_S = 5.0
# A holder that is frozen keeps its connection, hence its lock, but it no longer beats.
FROZEN_AFTER_S = 30.0


def single_writer(database: Database) -> Leadership:
    """An advisory lock of PostgreSQL; for SQLite, a lock on a file beside the database."""
    if not database.is_sqlite:
        return AdvisoryLock(database)
    return FileLock(Path(f"{database.url.database}.writer"))


class AdvisoryLock:
    """Held by a connection of its own, by which the holder shows every two seconds that it is not frozen."""

    def __init__(self, database: Database, frozen_after_s: float = FROZEN_AFTER_S) -> None:
        self._database, self._frozen_after_s = database, frozen_after_s
        self._connection: AsyncConnection | None = None
        self._key = {"key": f"mindbus writer {database.schema}"}

    async def try_acquire(self) -> bool:
        connection = await self._connect()
        if await connection.scalar(text("SELECT pg_try_advisory_lock(hashtext(:key))"), self._key):
            return True
        await self._end_frozen_holder(connection)
        return False

    async def acquire(self) -> None:
        while True:
            try:
                if await self.try_acquire():
                    return
            except (SQLAlchemyError, OSError) as error:
                logger().warning("cannot ask for the writer's lock", schema=self._database.schema, reason=str(error))
                await self.release()
            await asyncio.sleep(_POLL_S)

    async def wait_until_lost(self) -> None:
        connection = await self._connect()
        while True:
            await asyncio.sleep(_BEAT_S)
            try:
                async with asyncio.timeout(_BEAT_WITHIN_S):
                    await connection.execute(text("SELECT 1"))
            except (SQLAlchemyError, OSError) as error:
                logger().warning("writer's lock is lost", schema=self._database.schema, reason=str(error))
                return

    async def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.invalidate()
                await connection.close()
            except (SQLAlchemyError, OSError) as error:
                logger().debug("writer's connection was gone already", reason=str(error))

    async def _connect(self) -> AsyncConnection:
        if self._connection is None:
            connection = await self._database.engine.connect()
            # A transaction would be open for ever, so nothing could be vacuumed.
            self._connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
        return self._connection

    async def _end_frozen_holder(self, connection: AsyncConnection) -> None:
        holder = text(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE locktype = 'advisory' AND granted AND pg_locks.database = pg_stat_activity.datid"
            " AND (classid::bigint << 32) | objid::bigint = hashtext(:key)"
            " AND datname = current_database() AND now() - state_change > make_interval(secs => :frozen_after_s)"
        )
        ended = await connection.scalar(holder, self._key | {"frozen_after_s": self._frozen_after_s})
        if ended:
            logger().warning("frozen writer is cut off", schema=self._database.schema)


class FileLock:
    """Held by this process through an open file; the operating system releases it however the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    async def try_acquire(self) -> bool:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_file(self._path)
        if lock is not None:
            self._file = lock
        return lock is not None

    async def acquire(self) -> None:
        while True:
            if await self.try_acquire():
                return
            await asyncio.sleep(_POLL_S)

    async def wait_until_lost(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

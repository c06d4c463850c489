"""Databases that wait for one another, that stall, that die."""

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import IntegrityError, InternalError
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.servers.postgres import PrivatePostgres
from mindbus.bus.memory import MemoryBroker, MemoryTransport
from mindbus.sql.database import Database
from mindbus.sql.errors import DatabaseAway, DatabaseDamaged, answering
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.postgresql import TimedConnection
from storage_service.tables import InputRow, TraceMemberRow
from tests.damaged_files import damage
from tests.postgres import DatabaseOf


@pytest.fixture
async def sqlite(sqlite_database_of: DatabaseOf) -> AsyncIterator[Database]:
    database = Database(sqlite_database_of("storage"), "storage")
    yield database
    await database.dispose()


@pytest.fixture
async def postgresql(postgres_url: str) -> AsyncIterator[Database]:
    database = Database(postgres_url, "storage")
    yield database
    await database.dispose()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds are long for a test."""
    monkeypatch.setattr(TimedConnection, "timeout_s", 0.3)


def member(number: int) -> dict[str, str]:
    return {"trace_id": "run_1", "member": f"agent.{number}"}


@pytest.mark.parametrize(
    ("pragma", "value"),
    [("journal_mode", "wal"), ("busy_timeout", 30000), ("foreign_keys", 1), ("synchronous", 2)],
)
async def test_sqlite_is_durable_patient_and_strict(sqlite: Database, pragma: str, value: object) -> None:
    async with sqlite.reading() as session:
        assert await session.scalar(text(f"PRAGMA {pragma}")) == value


async def test_a_new_file_that_another_connection_still_writes_is_opened_once_it_is_free(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    other.execute("CREATE TABLE served (number INTEGER)")
    other.execute("BEGIN IMMEDIATE")
    asyncio.get_running_loop().call_later(0.1, other.execute, "COMMIT")
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'new.db'}", "new")

    async with database.transaction() as session:
        await session.execute(text("INSERT INTO served VALUES (1)"))
        assert await session.scalar(text("PRAGMA journal_mode")) == "wal"

    other.close()
    await database.dispose()


async def test_a_row_must_point_at_something(database_of: DatabaseOf) -> None:
    database = Database(database_of("storage"), "storage")

    async with database.reading() as session:
        with pytest.raises(IntegrityError):
            await session.execute(insert(InputRow).values(artifact_id="art_absent", input_id="art_absent"))

    await database.dispose()


async def test_damage_that_nobody_has_met_is_found_before_a_message_is_taken(sqlite: Database) -> None:
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
    async with sqlite.transaction() as session:
        await session.execute(text(f"CREATE TABLE large AS {numbers} SELECT i, hex(randomblob(500)) AS x FROM n"))
    await sqlite.truncate_log()
    damage(Path(sqlite.url.database or ""))
    async with sqlite.reading() as session:
        assert await session.scalar(text("SELECT count(*) FROM inbox")) == 0

    with pytest.raises(DatabaseDamaged, match=r"(?s)storage\.db is damaged .*put a backup in its place"):
        await SqlInbox(sqlite).start(MemoryTransport(MemoryBroker()))


async def test_damage_that_a_query_meets_is_no_error_of_its_own(sqlite: Database) -> None:
    damage(Path(sqlite.url.database or ""))

    with pytest.raises(DatabaseDamaged):
        await sqlite.read(lambda connection: connection.execute(text("SELECT * FROM inbox")).all())


async def test_writers_of_sqlite_wait_for_each_other(sqlite: Database) -> None:
    async def write(number: int) -> None:
        async with sqlite.transaction() as session:
            await session.execute(insert(TraceMemberRow).values(member(number)))
            await asyncio.sleep(0)

    await asyncio.gather(*(write(number) for number in range(15)))

    async with sqlite.reading() as session:
        assert await session.scalar(text("SELECT count(*) FROM trace_members")) == 15


async def test_a_reader_of_sqlite_does_not_wait_for_the_writer(sqlite: Database) -> None:
    async with sqlite.transaction() as writing:
        await writing.execute(insert(TraceMemberRow).values(member(1)))
        async with asyncio.timeout(60), sqlite.reading() as session:
            assert await session.scalar(text("SELECT count(*) FROM trace_members")) == 0


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("search_path", "storage"),
        ("statement_timeout", "10s"),
        ("idle_in_transaction_session_timeout", "1min"),
        ("tcp_keepalives_idle", "10"),
    ],
)
async def test_postgresql_is_told_how_patient_to_be(postgresql: Database, setting: str, value: str) -> None:
    async with postgresql.reading() as session:
        assert await session.scalar(text(f"SHOW {setting}")) == value


async def test_a_migration_may_take_its_time(postgresql: Database) -> None:
    seen: list[str] = []
    postgresql.run_on_admin_connection(
        lambda connection: seen.append(connection.exec_driver_sql("SHOW statement_timeout").scalar_one())
    )
    assert seen == ["0"]


@pytest.mark.usefixtures("impatient")
async def test_a_postgresql_that_stalls_is_away(own_postgres: PrivatePostgres) -> None:
    database = Database(own_postgres.url, "storage")
    async with database.reading() as session:
        await session.execute(text("SELECT 1"))

        own_postgres.freeze()
        with pytest.raises(DatabaseAway):
            async with database.transaction() as other:
                await other.execute(text("SELECT 1"))

        own_postgres.thaw()

    async with database.reading() as session:
        assert await session.scalar(text("SELECT 1")) == 1
    await database.dispose()


async def test_a_postgresql_that_is_not_there_is_away() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        database = Database(f"postgresql+psycopg://mindbus@127.0.0.1:{taken.getsockname()[1]}/mindbus", "storage")

        with pytest.raises(DatabaseAway):
            async with database.reading():
                pass

    await database.dispose()


@pytest.mark.slow
async def test_a_machine_that_does_not_answer_is_away() -> None:
    """Its port takes connections, says nothing: as a stalled server does, or a firewall."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        database = Database(f"postgresql+psycopg://mindbus@127.0.0.1:{silent.getsockname()[1]}/mindbus", "storage")
        with pytest.raises(DatabaseAway):
            async with database.reading():
                pass
    await database.dispose()


async def pid_of(session: AsyncSession) -> int:
    pid: int = (await session.execute(text("SELECT pg_backend_pid()"))).scalar_one()
    return pid


async def cut(postgres_url: str, pid: int) -> None:
    """What an administrator does, or a network."""
    watching = Database(postgres_url, "storage")
    async with watching.transaction() as session:
        await session.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    await watching.dispose()


async def test_a_connection_that_was_cut_while_idle_is_replaced_unnoticed(
    postgresql: Database, postgres_url: str
) -> None:
    async with postgresql.reading() as session:
        pid = await pid_of(session)
    await cut(postgres_url, pid)

    async with postgresql.transaction() as session:
        await session.execute(insert(TraceMemberRow).values(member(1)))


async def test_a_connection_that_is_cut_in_the_middle_is_away(postgresql: Database, postgres_url: str) -> None:
    async def write() -> None:
        async with postgresql.transaction() as session:
            await cut(postgres_url, await pid_of(session))
            await session.execute(insert(TraceMemberRow).values(member(1)))

    with pytest.raises(DatabaseAway):
        await write()

    async with postgresql.reading() as session:
        assert await session.scalar(text("SELECT count(*) FROM trace_members")) == 0


class ReadOnlySqlTransaction(Exception):
    """As psycopg's, of a server that is a standby."""

    sqlstate = "25006"


def test_a_server_that_only_reads_is_away_and_no_bug() -> None:
    error = InternalError("INSERT", {}, ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"))

    with pytest.raises(DatabaseAway, match="read-only"), answering("storage"):
        raise error

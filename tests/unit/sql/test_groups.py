"""Transactions that come together share a COMMIT; whatever fails fails alone, unless the disk fails them all."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text

from mindbus.sql.database import Database, JobsOnly
from mindbus.sql.errors import DatabaseAway

MANY = 40


class Disk:
    """What reaches the database file, with a fault to be switched on."""

    def __init__(self, database: Database) -> None:
        assert database.groups is not None
        self.commits = 0
        self.is_full = False
        self._groups = database.groups

    async def watch(self) -> None:
        """From now on."""
        writer = await self._groups._open_writer()
        raw = writer.connection.dbapi_connection
        assert isinstance(raw, sqlite3.Connection)
        raw.set_trace_callback(self._note)
        raw.set_authorizer(self._allow)

    def _note(self, statement: str) -> None:
        self.commits += statement == "COMMIT"

    def _allow(self, action: int, argument: str | None, *_rest: str | None) -> int:
        is_commit = action == sqlite3.SQLITE_TRANSACTION and argument == "COMMIT"
        return sqlite3.SQLITE_DENY if is_commit and self.is_full else sqlite3.SQLITE_OK


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(f"sqlite+aiosqlite:///{tmp_path / 'groups.db'}", "groups")
    async with made.transaction() as session:
        await session.execute(text("CREATE TABLE served (number INTEGER PRIMARY KEY)"))
    yield made
    await made.dispose()


@pytest.fixture
async def disk(database: Database) -> Disk:
    watched = Disk(database)
    await watched.watch()
    return watched


def insert(connection: Connection, number: int) -> None:
    connection.execute(text("INSERT INTO served VALUES (:number)"), {"number": number})


async def write(database: Database, number: int) -> None:
    await database.write(lambda connection: insert(connection, number))


async def handle(database: Database, number: int, failure: Exception | None = None) -> None:
    """As a message does, in two steps with something else between them."""
    async with database.at_hand() as transaction:
        await transaction.run(lambda connection: insert(connection, number))
        await asyncio.sleep(0)
        await transaction.run(lambda connection: insert(connection, -number))
        if failure is not None:
            raise failure


async def served(database: Database) -> set[int]:
    return set(await database.read(lambda connection: connection.scalars(text("SELECT number FROM served")).all()))


async def test_those_who_come_together_share_a_commit(database: Database, disk: Disk) -> None:
    await asyncio.gather(*(handle(database, number) for number in range(1, MANY + 1)))

    assert await served(database) == {*range(1, MANY + 1), *range(-MANY, 0)}
    assert disk.commits <= 3


async def test_nobody_returns_before_the_commit(database: Database, disk: Disk) -> None:
    other = sqlite3.connect(str(database.url.database))

    async def write_and_look(number: int) -> bool:
        await write(database, number)
        return other.execute("SELECT 1 FROM served WHERE number = ?", (number,)).fetchone() is not None

    assert all(await asyncio.gather(*map(write_and_look, range(MANY))))
    other.close()


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read from /proc")
async def test_a_group_opens_no_temporary_file(database: Database) -> None:
    many = [{"number": number} for number in range(50_000)]
    await database.write(lambda connection: connection.execute(text("INSERT INTO served VALUES (:number)"), many))

    def change_all(connection: Connection) -> list[str]:
        connection.execute(text("UPDATE served SET number = -number"))
        return [str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]

    opened = await database.write(change_all)

    assert any(path.endswith("groups.db") for path in opened)
    assert not [path for path in opened if path.endswith("(deleted)") and "etilqs" in path]


async def test_one_that_fails_harms_no_other(database: Database, disk: Disk) -> None:
    fates = [LookupError("a bug") if number % 3 == 0 else None for number in range(1, MANY + 1)]

    results = await asyncio.gather(
        *(handle(database, number, fate) for number, fate in enumerate(fates, start=1)), return_exceptions=True
    )

    assert results == fates
    well = {number for number, fate in enumerate(fates, start=1) if fate is None}
    assert await served(database) == well | {-number for number in well}
    assert disk.commits <= 3


async def test_one_whose_statement_fails_harms_no_other(database: Database) -> None:
    results = await asyncio.gather(*(write(database, number) for number in (1, 2, 2, 3)), return_exceptions=True)

    assert [result is None for result in results] == [True, True, False, True]
    assert await served(database) == {1, 2, 3}


async def test_those_who_are_cancelled_leave_nothing_and_stop_nobody(database: Database) -> None:
    async def stall(number: int) -> None:
        async with database.at_hand() as transaction:
            await transaction.run(lambda connection: insert(connection, number))
            await asyncio.Event().wait()

    first = asyncio.create_task(write(database, 1))
    stalled = asyncio.create_task(stall(2))
    waiting = [asyncio.create_task(write(database, number)) for number in range(3, 8)]
    while not first.done() and not (await served(database)):
        await asyncio.sleep(0.001)
        if database.groups is not None and database.groups._lock.locked():
            break
    waiting[0].cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    stalled.cancel()
    await asyncio.gather(first, stalled, *waiting, return_exceptions=True)

    assert await served(database) >= {1, 4, 5, 6, 7}
    assert 2 not in await served(database)


async def test_one_that_is_cancelled_while_it_begins_a_group_locks_out_nobody(database: Database) -> None:
    other = sqlite3.connect(str(database.url.database), isolation_level=None, timeout=0.5)
    other.execute("BEGIN IMMEDIATE")
    beginning = asyncio.create_task(write(database, 1))
    await asyncio.wait([beginning], timeout=0.05)
    beginning.cancel()
    await asyncio.wait([beginning], timeout=0.01)
    beginning.cancel()
    other.execute("COMMIT")
    await asyncio.wait([beginning])

    assert beginning.cancelled()
    other.execute("BEGIN IMMEDIATE")
    other.execute("COMMIT")
    other.close()
    await write(database, 2)
    assert await served(database) == {2}


async def test_a_commit_that_fails_fails_the_whole_group_and_no_later_one(database: Database, disk: Disk) -> None:
    disk.is_full = True
    results = await asyncio.gather(*(handle(database, number) for number in (1, 2, 3)), return_exceptions=True)
    disk.is_full = False
    await handle(database, 4)

    assert all(isinstance(result, DatabaseAway) for result in results)
    assert await served(database) == {4, -4}


async def test_a_group_that_sqlite_rolls_back_by_itself_fails_as_a_whole(database: Database) -> None:
    def roll_back(connection: Connection) -> None:
        # As SQLite does where the disk is full.
        raw = connection.connection.dbapi_connection
        assert isinstance(raw, sqlite3.Connection)
        raw.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    results = await asyncio.gather(
        write(database, 1), write(database, 2), database.write(roll_back), write(database, 3), return_exceptions=True
    )

    assert [type(result) for result in results] == [
        *(DatabaseAway, DatabaseAway),
        *(sqlite3.OperationalError, type(None)),
    ]
    assert await served(database) == {3}


async def test_groups_and_sessions_take_turns(database: Database) -> None:
    async def by_session(number: int) -> None:
        async with database.transaction() as session:
            await session.execute(text("INSERT INTO served VALUES (:number)"), {"number": number})
            await asyncio.sleep(0)

    await asyncio.gather(
        *((write, lambda _d, n: by_session(n))[number % 2](database, number) for number in range(MANY))
    )

    assert await served(database) == set(range(MANY))


async def test_a_writer_of_another_process_is_waited_for(database: Database) -> None:
    other = sqlite3.connect(str(database.url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(write(database, 1))
    await asyncio.wait([waiting], timeout=0.05)
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    await waiting

    assert await served(database) == {1}


async def test_a_session_used_first_takes_the_jobs_along(database: Database) -> None:
    async with database.at_hand() as transaction:
        await transaction.session.execute(text("INSERT INTO served VALUES (1)"))
        await transaction.run(lambda connection: insert(connection, 2))
        assert await served(database) == set()

    assert await served(database) == {1, 2}


async def test_a_session_after_a_job_would_be_another_transaction(database: Database) -> None:
    async def mix() -> None:
        async with database.at_hand() as transaction:
            await transaction.run(lambda connection: insert(connection, 1))
            _ = database.session

    with pytest.raises(JobsOnly):
        await mix()

    assert await served(database) == set()


async def test_short_reads_cannot_write(database: Database) -> None:
    with pytest.raises(DatabaseAway):
        await database.read(lambda connection: insert(connection, 1))


async def test_a_database_is_open_again_after_it_was_disposed_of(database: Database) -> None:
    await write(database, 1)
    await database.dispose()
    await write(database, 2)

    assert await served(database) == {1, 2}


async def test_whoever_writes_while_it_is_disposed_of_is_served(database: Database) -> None:
    writing = [asyncio.create_task(write(database, number)) for number in range(MANY)]
    disposing = [asyncio.create_task(database.dispose())]
    writing += [asyncio.create_task(write(database, number)) for number in range(MANY, 2 * MANY)]
    await asyncio.sleep(0)
    disposing += [asyncio.create_task(database.dispose())]
    await asyncio.gather(*writing, *disposing)

    assert await served(database) == set(range(2 * MANY))


async def test_all_of_a_group_are_seen_by_those_after_them(database: Database) -> None:
    seen: list[int] = []

    async def count(number: int) -> None:
        def job(connection: Connection) -> None:
            seen.append(connection.scalar(text("SELECT count(*) FROM served")) or 0)
            insert(connection, number)

        await database.write(job)

    await asyncio.gather(*map(count, range(MANY)))

    assert seen == list(range(MANY))


def test_nothing_is_left_open(tmp_path: Path) -> None:
    """Connections that listen to a pool would keep each other alive."""
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'closed.db'}", "groups")
    assert database.groups is not None
    opened: list[sqlite3.Connection] = []
    event.listen(database.groups.engine, "connect", lambda connection, _record: opened.append(connection))

    async def live() -> None:
        await database.write(lambda connection: connection.execute(text("CREATE TABLE served (number INTEGER)")))
        await served(database)
        await database.dispose()

    asyncio.run(live())

    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError):
            connection.execute("SELECT 1")
    assert len(opened) == 2


async def test_a_refusal_because_of_others_in_the_group_waits_for_their_commit(database: Database, disk: Disk) -> None:
    disk.is_full = True
    results = await asyncio.gather(*(write(database, 1) for _ in range(3)), return_exceptions=True)
    disk.is_full = False

    # One would have met its own row in vain: there is none.
    assert all(isinstance(result, DatabaseAway) for result in results)
    await write(database, 1)
    assert await served(database) == {1}

"""Writers to one SQLite file take turns; whoever leaves, however it leaves, ends its turn."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from mindbus.sql.database import Database

MANY = 40


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(f"sqlite+aiosqlite:///{tmp_path / 'turns.db'}", "turns")
    async with made.transaction() as session:
        await session.execute(text("CREATE TABLE served (number INTEGER)"))
    yield made
    await made.dispose()


async def served(database: Database) -> list[int]:
    async with database.reading() as session:
        return list(await session.scalars(text("SELECT number FROM served ORDER BY rowid")))


async def write(database: Database, number: int) -> None:
    async with database.transaction() as session:
        await session.execute(text("INSERT INTO served VALUES (:number)"), {"number": number})


async def test_those_who_wait_all_write_once_it_is_their_turn(database: Database) -> None:
    async with database.transaction() as session:
        await session.execute(text("INSERT INTO served VALUES (-1)"))
        waiting = [asyncio.create_task(write(database, number)) for number in range(10)]
        assert await served(database) == []
    await asyncio.gather(*waiting)

    assert sorted(await served(database)) == [-1, *range(10)]
    assert (await served(database))[0] == -1


async def test_writers_that_fail_or_are_cancelled_take_their_turn_with_them(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as session:
            await session.execute(text("INSERT INTO served VALUES (0)"))
            raise LookupError

    async def stall() -> None:
        async with database.transaction() as session:
            await session.execute(text("INSERT INTO served VALUES (0)"))
            await asyncio.Event().wait()

    stalled = asyncio.create_task(stall())
    waiting = [asyncio.create_task(write(database, number)) for number in range(1, 6)]
    await asyncio.sleep(0)
    waiting[2].cancel()
    stalled.cancel()
    with pytest.raises(LookupError):
        await fail()
    await asyncio.gather(stalled, *waiting, return_exceptions=True)

    await write(database, 9)
    assert set(await served(database)) >= {1, 2, 4, 5, 9}


async def test_a_writer_of_another_process_is_waited_for_as_before(database: Database) -> None:
    other = Database(str(database.url), "turns")
    async with other.transaction() as session:
        await session.execute(text("INSERT INTO served VALUES (1)"))
        waiting = asyncio.create_task(write(database, 2))
        await asyncio.wait([waiting], timeout=0.05)
        assert not waiting.done()
    await waiting

    assert await served(database) == [1, 2]
    await other.dispose()


async def test_many_at_once_all_come_through(database: Database) -> None:
    await asyncio.gather(*(write(database, number) for number in range(MANY)))

    assert sorted(await served(database)) == list(range(MANY))

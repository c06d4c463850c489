"""PostgreSQL's advisory lock keeps storage's single writer."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from mindbus.sql.database import Database
from mindbus.sql.leadership import AdvisoryLock


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    database = Database(postgres_url, "storage")
    yield database
    await database.dispose()


@pytest.fixture
async def other(postgres_url: str) -> AsyncIterator[Database]:
    """The same database, as another instance sees it."""
    database = Database(postgres_url, "storage")
    yield database
    await database.dispose()


async def end_other_holders(watching: Database) -> None:
    """What a network or an administrator does to a holder."""
    async with watching.transaction() as session:
        await session.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_locks"
                " WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()"
            )
        )


async def test_one_holds_it_until_it_lets_go(database: Database, other: Database) -> None:
    first, second = AdvisoryLock(database), AdvisoryLock(other)
    assert await first.try_acquire()
    assert not await second.try_acquire()

    await first.release()

    async with asyncio.timeout(10):
        await second.acquire()
    assert not await first.try_acquire()
    await first.release()
    await second.release()


async def test_services_lock_apart(database: Database, postgres_url: str) -> None:
    orchestrator = Database(postgres_url, "orchestrator")
    one, another = AdvisoryLock(database), AdvisoryLock(orchestrator)
    assert await one.try_acquire()
    assert await another.try_acquire()
    await one.release()
    await another.release()
    await orchestrator.dispose()


async def test_a_holder_whose_connection_is_cut_hears_of_it_and_another_takes_over(
    database: Database, other: Database
) -> None:
    first, second = AdvisoryLock(database), AdvisoryLock(other)
    assert await first.try_acquire()
    await end_other_holders(other)
    async with asyncio.timeout(10):
        await first.wait_until_lost()
        await second.acquire()
    await first.release()
    await second.release()


async def test_a_frozen_holder_is_cut_off(database: Database, other: Database) -> None:
    frozen, second = AdvisoryLock(database), AdvisoryLock(other, frozen_after_s=0.2)
    assert await frozen.try_acquire()

    async with asyncio.timeout(10):
        await second.acquire()
        await frozen.wait_until_lost()
    await frozen.release()
    await second.release()


async def test_a_holder_that_beats_is_left_alone(database: Database, other: Database) -> None:
    first, second = AdvisoryLock(database), AdvisoryLock(other, frozen_after_s=4)
    assert await first.try_acquire()
    holding = asyncio.create_task(first.wait_until_lost())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(6):
            await second.acquire()
    assert not holding.done()
    holding.cancel()
    await first.release()
    await second.release()

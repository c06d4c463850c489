"""Turns are embedded when nobody talks or searches; they do not wait for ever."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory.lsm.archived_texts import ArchivedTexts
from memory.lsm.search.embeddings import QueryEmbeddings, TurnBacklog
from memory.lsm.search.index_cache import ChatIndexCache
from memory.lsm.search.index_snapshots import IndexSnapshots
from mindbus.sql.database import Database
from mindbus.testing.wait import until


class Now:
    """Seconds as a test has them."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
async def backlog(tmp_path: Path, now: Now) -> AsyncIterator[TurnBacklog]:
    database = Database(f"sqlite+aiosqlite:///{tmp_path}/lsm.db", "lsm")
    indexes = ChatIndexCache(
        database,
        timedelta(hours=3),
        2**20,
        IndexSnapshots(database, tmp_path / "indexes"),
        ArchivedTexts(database, None),
    )
    found = TurnBacklog(database, QueryEmbeddings(), indexes, now)
    # What an earlier process may have left.
    await found.until_due()
    assert not await found.step()
    yield found
    await database.dispose()


async def test_turns_wait_until_nobody_talks_or_searches(backlog: TurnBacklog, now: Now) -> None:
    backlog.on_recorded("anna")
    due = asyncio.create_task(backlog.until_due())
    now.seconds += 0.99
    backlog.note_use()
    now.seconds += 0.99
    await asyncio.sleep(0)
    assert not due.done()

    now.seconds += 0.01
    await until(due.done)


async def test_turns_do_not_wait_longer_than_half_a_minute(backlog: TurnBacklog, now: Now) -> None:
    backlog.on_recorded("anna")
    now.seconds += 30
    backlog.note_use()

    await backlog.until_due()

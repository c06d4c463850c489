"""A long-term memory for each test."""

from collections.abc import AsyncIterator

import pytest

from mindbus.sql.database import Database
from tests.lsm_kit import Archive
from tests.postgres import DatabaseOf


@pytest.fixture
async def archive(database_of: DatabaseOf) -> AsyncIterator[Archive]:
    """On either database."""
    found = Archive(Database(database_of("lsm"), "lsm"))
    yield found
    await found.database.dispose()

"""A library for each test."""

from collections.abc import AsyncIterator

import pytest

from memory.glm.tables import PRAGMAS
from mindbus.sql.database import Database
from tests.memory_kit import Library
from tests.postgres import DatabaseOf


@pytest.fixture
async def library(database_of: DatabaseOf) -> AsyncIterator[Library]:
    """On either database."""
    found = Library(Database(database_of("glm"), "glm", PRAGMAS))
    yield found
    await found.database.dispose()

"""A library for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.glm.index_sync import VectorRelay
from memory.glm.search import KemSearch
from memory.glm.tables import PRAGMAS
from memory.vectors.embedded import EmbeddedIndex
from mindbus.sql.database import Database
from tests.hashing_embedder import HashingEmbedder
from tests.memory_kit import Library
from tests.postgres import DatabaseOf


@pytest.fixture
async def library(database_of: DatabaseOf) -> AsyncIterator[Library]:
    """On either database."""
    found = Library(Database(database_of("glm"), "glm", PRAGMAS))
    yield found
    await found.database.dispose()


@pytest.fixture
async def search(library: Library, tmp_path: Path) -> AsyncIterator[KemSearch]:
    """Over the library, by words and by vectors that come of the words."""
    embedder = HashingEmbedder()
    library.kems.space = embedder.space
    relay = VectorRelay(library.database, EmbeddedIndex(tmp_path / "glm.vectors", embedder.space))
    await relay.open()
    yield KemSearch(library.queries, relay, embedder, library.clock)
    await relay.index.close()

"""Memory is killed in the middle of its writes: what was said to be stored is there, rows and vectors agree."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from memory.glm.tables import PRAGMAS
from memory.glm.vector_relay import VectorRelay
from memory.vectors.embedded import EmbeddedIndex
from mindbus.sql.database import Database
from tests.memory_kit import RESEARCHER, SPACE, Library
from tests.postgres import DatabaseOf

ROOT = Path(__file__).parents[2]


def first_after_a_kill(url: str, index_file: Path, first: int, batches: int) -> int:
    """Have a process store so many batches, kill it with the next at hand; where what it said to be stored ends."""
    command = [sys.executable, "-m", "tests.memory_writer", url, str(index_file), str(first)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(batches)]
        writer.kill()
        return int([*said, *writer.stdout.read().split()][-1])


@pytest.mark.chaos
@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.proof)])
async def test_what_was_stored_survives_kills(sqlite_database_of: DatabaseOf, tmp_path: Path, kills: int) -> None:
    url, index_file, chance = sqlite_database_of("glm"), tmp_path / "glm.vectors", random.Random(kills)
    stored = 1
    for _ in range(kills):
        stored = first_after_a_kill(url, index_file, stored, chance.randrange(1, 8))

    library = Library(Database(url, "glm", PRAGMAS))
    index = EmbeddedIndex(index_file, SPACE)
    relay = VectorRelay(library.database, index)
    await relay.open()
    await relay.reconcile()
    report = await relay.check()
    missing = [n for n in range(1, stored) if n % 97 == 0 and not await library.found(RESEARCHER, ids=[f"kem_{n}"])]

    assert report.is_clean
    assert report.kems == report.vectors >= stored
    assert missing == []
    await index.close()
    await library.database.dispose()

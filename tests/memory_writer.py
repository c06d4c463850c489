"""A process that stores units for ever, saying which are stored, until it is killed."""

import asyncio
import sys
from pathlib import Path

from memory.glm.index_sync import VectorRelay
from memory.glm.tables import PRAGMAS
from memory.vectors.embedded import EmbeddedIndex
from mindbus.sql.database import Database
from tests.memory_kit import SPACE, Library, a_draft, a_vector

_BATCH = 20


async def write_for_ever(url: str, index_file: Path, first: int) -> None:
    library = Library(Database(url, "glm", PRAGMAS))
    relay = VectorRelay(library.database, EmbeddedIndex(index_file, SPACE), batch=7)
    await relay.open()
    await relay.reconcile()
    while True:
        numbers = range(first, first + _BATCH)
        drafts = [a_draft(id=f"kem_{n}", metadata={"n": n}, embeddings=a_vector(1, n, 0, 0)) for n in numbers]
        # The one before is replaced as well, so that a kill may fall between two versions.
        await library.store_all(*drafts, a_draft("again", id=f"kem_{first - 1}", embeddings=a_vector(1, 2, 3, 4)))
        print(first + _BATCH, flush=True)
        await relay.relay()
        first += _BATCH


if __name__ == "__main__":
    asyncio.run(write_for_ever(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))

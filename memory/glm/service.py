"""All of the global memory over one database, one index of vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memory.glm.changing import Changing
from memory.glm.erasing import Erasing
from memory.glm.finding import Finding
from memory.glm.following import Following
from memory.glm.nearness import Nearness
from memory.glm.retrieval import Retrieval
from memory.glm.statistics import Statistics
from memory.glm.tables import MIGRATIONS, PRAGMAS
from memory.glm.vector_relay import VectorRelay
from memory.glm.writing import Writing
from memory.vectors.index import VectorIndex
from memory.vectors.opening import index_of, space_of
from mindbus.logs import logger
from mindbus.settings import Settings
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade


@dataclass(frozen=True, slots=True)
class GlobalMemory:
    """What the glm worker listens for."""

    database: Database
    index: VectorIndex
    writing: Writing
    changing: Changing
    finding: Finding
    erasing: Erasing
    statistics: Statistics
    relay: VectorRelay
    following: Following

    async def start(self) -> None:
        """Bring the vectors up to date with the rows."""
        await self.relay.open()
        found = await self.relay.reconcile()
        if not found.is_clean:
            differing = {"missing": len(found.missing), "stale": len(found.stale), "surplus": len(found.surplus)}
            logger().info("vectors reconciled", waiting=found.waiting, **differing)


def memory_over(database: Database, index: VectorIndex, clock: Callable[[], datetime]) -> GlobalMemory:
    """Put the parts together; nothing is opened yet."""
    relay = VectorRelay(database, index)
    following = Following(database, relay)
    retrieval = Retrieval(database)
    return GlobalMemory(
        database=database,
        index=index,
        writing=Writing(database, clock, index.space),
        changing=Changing(database, clock, index.space),
        finding=Finding(retrieval, Nearness(index, retrieval), following),
        erasing=Erasing(database),
        statistics=Statistics(database, index.space),
        relay=relay,
        following=following,
    )


def database_of(settings: Settings) -> Database:
    """The global memory's own."""
    return Database(settings.database_of("glm"), "glm", PRAGMAS)


async def open_memory(database: Database, settings: Settings, clock: Callable[[], datetime]) -> GlobalMemory:
    """With its tables and vectors brought up to date. Raises IndexGone, IndexOfAnotherSpace, IndexAway."""
    memory = await _migrated(database, settings, clock)
    try:
        await memory.start()
    except BaseException:
        await memory.index.close()
        raise
    return memory


async def rebuild_vectors(database: Database, settings: Settings, clock: Callable[[], datetime]) -> int:
    """Make the index anew from the rows; how many it has. Whoever calls it must be the only one to write."""
    memory = await _migrated(database, settings, clock)
    try:
        return await memory.relay.rebuild()
    finally:
        await memory.index.close()


async def _migrated(database: Database, settings: Settings, clock: Callable[[], datetime]) -> GlobalMemory:
    await upgrade(database, MIGRATIONS)
    return memory_over(database, index_of(settings, "glm", space_of(settings)), clock)

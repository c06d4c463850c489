"""All of the global memory over one database, one index of vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import event

from memory.embedding.embedder import Embedder
from memory.glm.changing import Changing
from memory.glm.erasing import Erasing
from memory.glm.filling import Filling
from memory.glm.finding import Finding
from memory.glm.following import Following
from memory.glm.nearness import Nearness
from memory.glm.placing import place_of, settled_space
from memory.glm.ranking import Ranking
from memory.glm.retrieval import Retrieval
from memory.glm.statistics import Statistics
from memory.glm.tables import MIGRATIONS, PRAGMAS
from memory.glm.vector_relay import VectorRelay
from memory.glm.words import Words
from memory.glm.writing import Writing
from memory.vectors.index import VectorIndex
from memory.vectors.opening import index_of
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
    filling: Filling

    async def start(self) -> None:
        """Bring the vectors up to date with the rows."""
        await self.filling.forget_others(self.index.space)
        await self.relay.open()
        found = await self.relay.reconcile()
        if not found.is_clean:
            differing = {"missing": len(found.missing), "stale": len(found.stale), "surplus": len(found.surplus)}
            logger().info("vectors reconciled", waiting=found.waiting, **differing)

    def after_commit(self) -> None:
        """Vectors follow the transaction at hand once it is committed: until then nobody else sees what it wrote."""
        event.listen(self.database.session.sync_session, "after_commit", lambda _session: self.wake(), once=True)

    def wake(self) -> None:
        """Something has been committed."""
        self.filling.wake()
        self.following.wake()

    async def close(self) -> None:
        """Let go of index and model; the database is the worker's."""
        await self.index.close()
        if self.filling.embedder is not None:
            await self.filling.embedder.close()


def memory_over(
    database: Database, index: VectorIndex, embedder: Embedder | None, clock: Callable[[], datetime]
) -> GlobalMemory:
    """Put the parts together; nothing is opened yet."""
    relay = VectorRelay(database, index)
    following = Following(relay)
    retrieval = Retrieval(database)
    ranking = Ranking(Nearness(index, retrieval), Words(database), embedder)
    return GlobalMemory(
        database=database,
        index=index,
        writing=Writing(database, clock, index.space),
        changing=Changing(database, clock, index.space),
        finding=Finding(retrieval, ranking, following),
        erasing=Erasing(database),
        statistics=Statistics(database, index.space),
        relay=relay,
        following=following,
        filling=Filling(database, embedder),
    )


def database_of(settings: Settings) -> Database:
    """The global memory's own."""
    return Database(settings.database_of("glm"), "glm", PRAGMAS)


async def open_memory(database: Database, settings: Settings, clock: Callable[[], datetime]) -> GlobalMemory:
    """With tables and vectors brought up to date. Raises IndexGone, IndexOfAnotherSpace, IndexAway, EmbedderFailure."""
    await upgrade(database, MIGRATIONS)
    place = await place_of(database, settings)
    memory = memory_over(database, index_of(settings, "glm", place.space), place.embedder, clock)
    try:
        await memory.start()
    except BaseException:
        await memory.close()
        raise
    return memory


async def rebuild_vectors(database: Database, settings: Settings) -> int:
    """Make the index anew from the rows; how many it has. Whoever calls it must be the only one to write."""
    await upgrade(database, MIGRATIONS)
    index = index_of(settings, "glm", await settled_space(database, settings))
    try:
        return await VectorRelay(database, index).rebuild()
    finally:
        await index.close()

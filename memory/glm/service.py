"""All of the global memory over one database, one index of vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import event

from memory.embedding.embedder import Embedder
from memory.glm.embedding_backlog import EmbeddingBacklog
from memory.glm.erasure import KemErasure
from memory.glm.index_sync import IndexSync, VectorRelay
from memory.glm.lexical import LexicalSearch
from memory.glm.placement import placement_of, settled_space
from memory.glm.queries import KemQueries, KemStatistics
from memory.glm.search import HybridSearch, PagedSearch, SemanticSearch
from memory.glm.store import KemStore, KemUpdates
from memory.glm.tables import MIGRATIONS, PRAGMAS
from memory.vectors.backends import open_vector_index
from memory.vectors.index import VectorIndex
from mindbus.logs import logger
from mindbus.settings import Settings
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade


@dataclass(frozen=True, slots=True)
class GlobalMemory:
    """What the glm worker listens for."""

    database: Database
    index: VectorIndex
    writing: KemStore
    changing: KemUpdates
    finding: PagedSearch
    erasing: KemErasure
    statistics: KemStatistics
    relay: VectorRelay
    following: IndexSync
    filling: EmbeddingBacklog

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
    following = IndexSync(relay)
    retrieval = KemQueries(database)
    ranking = HybridSearch(SemanticSearch(index, retrieval), LexicalSearch(database), embedder)
    return GlobalMemory(
        database=database,
        index=index,
        writing=KemStore(database, clock, index.space),
        changing=KemUpdates(database, clock, index.space),
        finding=PagedSearch(retrieval, ranking, following),
        erasing=KemErasure(database),
        statistics=KemStatistics(database, index.space),
        relay=relay,
        following=following,
        filling=EmbeddingBacklog(database, embedder),
    )


def database_of(settings: Settings) -> Database:
    """The global memory's own."""
    return Database(settings.database_of("glm"), "glm", PRAGMAS)


async def open_memory(database: Database, settings: Settings, clock: Callable[[], datetime]) -> GlobalMemory:
    """With tables and vectors brought up to date. Raises IndexGone, IndexOfAnotherSpace, IndexAway, EmbedderFailure."""
    await upgrade(database, MIGRATIONS)
    place = await placement_of(database, settings)
    memory = memory_over(database, open_vector_index(settings, "glm", place.space), place.embedder, clock)
    try:
        await memory.start()
    except BaseException:
        await memory.close()
        raise
    return memory


async def rebuild_vectors(database: Database, settings: Settings) -> int:
    """Make the index anew from the rows; how many it has. Whoever calls it must be the only one to write."""
    await upgrade(database, MIGRATIONS)
    index = open_vector_index(settings, "glm", await settled_space(database, settings))
    try:
        return await VectorRelay(database, index).rebuild()
    finally:
        await index.close()

"""The global memory: its parts over one database and one vector index."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import event

from config.settings import FleetSettings
from memory.embedding.embedder import Embedder
from memory.glm.embedding_backlog import KemEmbeddingBacklog
from memory.glm.erasure import KemErasure
from memory.glm.index_sync import IndexSync, VectorRelay
from memory.glm.lexical import LexicalSearch
from memory.glm.placement import open_vector_index, placement_of, recorded_space
from memory.glm.queries import KemQueries, KemStatistics
from memory.glm.search import HybridSearch, PagedSearch, SemanticSearch
from memory.glm.store import KemStore
from memory.glm.tables import MIGRATIONS, PRAGMAS
from memory.vectors.index import VectorIndex
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade


@dataclass(frozen=True, slots=True)
class GlobalMemory:
    """All parts that the glm worker uses."""

    database: Database
    index: VectorIndex
    store: KemStore
    search: PagedSearch
    erasure: KemErasure
    statistics: KemStatistics
    relay: VectorRelay
    index_sync: IndexSync
    backlog: KemEmbeddingBacklog

    async def start(self) -> None:
        """Bring the vector index up to date with the rows."""
        await self.backlog.drop_other_models(self.index.space)
        await self.relay.open()
        report = await self.relay.reconcile()
        if not report.is_clean:
            differing = {"missing": len(report.missing), "stale": len(report.stale), "surplus": len(report.surplus)}
            logger().info("vectors reconciled", waiting=report.waiting, **differing)

    def after_commit(self) -> None:
        """Start embedding and index sync once the current transaction is committed, when others can see its writes."""
        event.listen(self.database.session.sync_session, "after_commit", lambda _session: self.notify(), once=True)

    def notify(self) -> None:
        """Announce a commit to the background tasks."""
        self.backlog.notify()
        self.index_sync.notify()

    async def close(self) -> None:
        """Close index and embedder; the database is the worker's."""
        await self.index.close()
        if self.backlog.embedder is not None:
            await self.backlog.embedder.close()


def memory_over(
    database: Database, index: VectorIndex, embedder: Embedder | None, clock: Callable[[], datetime]
) -> GlobalMemory:
    """Assemble the parts; nothing is opened yet."""
    relay = VectorRelay(database, index)
    index_sync = IndexSync(relay)
    queries = KemQueries(database)
    search = HybridSearch(SemanticSearch(index, queries), LexicalSearch(database), embedder)
    return GlobalMemory(
        database=database,
        index=index,
        store=KemStore(database, clock, index.space),
        search=PagedSearch(queries, search, index_sync),
        erasure=KemErasure(database),
        statistics=KemStatistics(database, index.space),
        relay=relay,
        index_sync=index_sync,
        backlog=KemEmbeddingBacklog(database, embedder),
    )


def database_of(settings: FleetSettings) -> Database:
    """Database of the global memory."""
    return Database(settings.database_of("glm"), "glm", PRAGMAS)


async def open_memory(database: Database, settings: FleetSettings, clock: Callable[[], datetime]) -> GlobalMemory:
    """Memory with tables and vectors up to date. Raises IndexGone, IndexOfAnotherSpace, IndexAway, EmbedderFailure."""
    await upgrade(database, MIGRATIONS)
    placement = await placement_of(database, settings)
    index = open_vector_index(settings, "glm", placement.space)
    memory = memory_over(database, index, placement.embedder, clock)
    try:
        await memory.start()
    except BaseException:
        await memory.close()
        raise
    return memory


async def rebuild_vectors(database: Database, settings: FleetSettings) -> int:
    """Rebuild the vector index from the rows; returns the number of vectors. The caller must be the only writer."""
    await upgrade(database, MIGRATIONS)
    index = open_vector_index(settings, "glm", await recorded_space(database, settings))
    try:
        return await VectorRelay(database, index).rebuild()
    finally:
        await index.close()

"""The global memory: its parts over one database and one vector index."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import event

from config.settings import FleetSettings
from memory.embedding.embedder import Embedder
from memory.glm.embedding_backlog import KemEmbeddingBacklog
from memory.glm.index_sync import VectorRelay
from memory.glm.placement import open_vector_index, placement_of, recorded_space
from memory.glm.queries import KemQueries
from memory.glm.search import KemSearch
from memory.glm.store import KemStore
from memory.glm.tables import MIGRATIONS, PRAGMAS
from memory.vectors.index import VectorIndex
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade


class GlobalMemory:
    """All parts that the glm worker uses; `start` opens the index."""

    def __init__(
        self, database: Database, index: VectorIndex, embedder: Embedder | None, clock: Callable[[], datetime]
    ) -> None:
        self.database, self.index = database, index
        self.store, self.queries = KemStore(database, clock, index.space), KemQueries(database)
        self.relay, self.backlog = VectorRelay(database, index), KemEmbeddingBacklog(database, embedder)
        self.search = KemSearch(self.queries, self.relay, embedder)

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
        self.relay.notify()

    async def close(self) -> None:
        """Close index and embedder; the database is the worker's."""
        await self.index.close()
        if self.backlog.embedder is not None:
            await self.backlog.embedder.close()


def database_of(settings: FleetSettings) -> Database:
    return Database(settings.database_of("glm"), "glm", PRAGMAS)


async def open_memory(database: Database, settings: FleetSettings, clock: Callable[[], datetime]) -> GlobalMemory:
    """Memory with tables and vectors up to date. Raises IndexGone, IndexOfAnotherSpace, IndexAway, EmbedderFailure."""
    await upgrade(database, MIGRATIONS)
    placement = await placement_of(database, settings)
    index = open_vector_index(settings, "glm", placement.space)
    memory = GlobalMemory(database, index, placement.embedder, clock)
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

"""The global memory: its parts over one database and one vector index, its embedding space and embedder."""

import hashlib
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import select

from config.settings import FleetSettings
from memory.glm.embedding_backlog import KemEmbeddingBacklog
from memory.glm.eviction import PriorityEviction
from memory.glm.index_sync import VectorRelay
from memory.glm.queries import KemQueries
from memory.glm.search import KemSearch
from memory.glm.store import KemStore
from memory.glm.tables import MIGRATIONS, PRAGMAS, SpaceRow
from memory.vectors.index import VectorIndex
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from retrieval.embedding.embedder import Embedder, EmbedderFailure, EmbeddingSpace
from retrieval.embedding.selection import configured_embedder

# Space and embedder; without an embedder, texts are found by their words alone.
Placement = tuple[EmbeddingSpace, Embedder | None]


class GlobalMemory:
    """All parts that the glm worker uses; `start` opens the index."""

    def __init__(
        self,
        database: Database,
        index: VectorIndex,
        embedder: Embedder | None,
        clock: Callable[[], datetime],
        most_units: int = 0,
    ) -> None:
        """Of each owner at most so many units are kept, 0: all."""
        self.database, self.index = database, index
        self.store, self.queries = KemStore(database, clock, index.space), KemQueries(database)
        self.relay, self.backlog = VectorRelay(database, index), KemEmbeddingBacklog(database, embedder)
        self.search = KemSearch(self.queries, self.relay, embedder, clock)
        self.eviction = PriorityEviction(database, clock, most_units)

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
        self.database.after_commit(self.notify)

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
    space, embedder = await placement_of(database, settings)
    index = open_vector_index(settings, "glm", space)
    memory = GlobalMemory(database, index, embedder, clock, settings.glm_max_units)
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


def open_vector_index(settings: FleetSettings, service: str, space: EmbeddingSpace) -> VectorIndex:
    """Qdrant or PostgreSQL where they are set, else a file; not opened yet.

    Each model has an index of its own, so that memory can migrate to another model while it goes on answering.
    """
    # Imported here: only one is used, and each takes time to import.
    if settings.pgvector:
        from memory.vectors.pgvector import PgVectorIndex

        return PgVectorIndex(Database(settings.database_of(service), service), space)
    if settings.qdrant_url is None:
        from memory.vectors.embedded import EmbeddedIndex

        digest = hashlib.sha256(space.model.encode()).hexdigest()[:12]
        return EmbeddedIndex(settings.vectors_folder / f"{service}-{digest}.vectors", space)
    from qdrant_client import AsyncQdrantClient

    from memory.vectors.qdrant import QdrantIndex

    client = AsyncQdrantClient(url=settings.qdrant_url, api_key=settings.qdrant_api_key, check_compatibility=False)
    return QdrantIndex(client, space, name="-".join(filter(None, ("mindbus", settings.tenant, service))))


async def space_in_use(database: Database) -> EmbeddingSpace | None:
    """Space as the database has it; None before the first start. Raises DatabaseAway."""
    async with database.reading() as session:
        row = await session.scalar(select(SpaceRow))
    return None if row is None else EmbeddingSpace(row.model, row.dim)


def space_row(space: EmbeddingSpace) -> SpaceRow:
    return SpaceRow(number=1, model=space.model, dim=space.dim)


async def placement_of(database: Database, settings: FleetSettings) -> Placement:
    """The space in use, by default that of the settings, which is recorded; it stays until `mindbus glm reindex`.

    Raises EmbedderFailure if no space is in use yet and the embedder cannot tell its own.
    """
    recorded = await space_in_use(database)
    if recorded is not None and recorded.model != settings.embedding_model:
        logger().warning("memory is of another model: mindbus glm reindex", model=recorded.model)
    dim = settings.embedding_dim
    space = recorded or (None if dim is None else EmbeddingSpace(settings.embedding_model, dim))
    space, embedder = await _placement(space, settings)
    if recorded is None:
        async with database.transaction() as session:
            await session.merge(space_row(space))
    return space, embedder


async def recorded_space(database: Database, settings: FleetSettings) -> EmbeddingSpace:
    """The space alone. Raises EmbedderFailure where it cannot be found out."""
    if (recorded := await space_in_use(database)) is not None:
        return recorded
    space, embedder = await placement_of(database, settings)
    if embedder is not None:
        await embedder.close()
    return space


async def _placement(space: EmbeddingSpace | None, settings: FleetSettings) -> Placement:
    try:
        embedder = await configured_embedder(settings, space)
    except EmbedderFailure as error:
        if space is None:
            raise
        reason = str(error)
    else:
        if space is None or embedder.space == space:
            return embedder.space, embedder
        await embedder.close()
        reason = f"the model makes {embedder.space}"
    logger().warning("texts are found by their words alone", reason=reason)
    return space, None

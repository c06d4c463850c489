"""Embeddings for units that are stored without one: a few at once, the rest in the background."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import and_, select, update

from bus_schema.embeddings import Embedding
from bus_schema.glm import KemChanges
from bus_schema.kem import KemDraft
from memory.glm.store import note_vector_writes
from memory.glm.tables import KemRow
from mindbus.logs import logger
from mindbus.sql.database import Database
from retrieval.embedding.embedder import Embedder, EmbedderFailure, EmbeddingSpace

# A few units are embedded before they are stored, so that they are found at once; many are embedded later.
_MAX_DRAFTS = 4
_DRAFTS_WITHIN_S = 5.0
_BATCH = 16

_LACKS_VECTOR = and_(KemRow.model.is_(None), KemRow.content.is_not(None))


class KemEmbeddingBacklog:
    """Adds vectors to units; this changes neither their versions nor their times."""

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self.database, self.embedder = database, embedder
        self._due = asyncio.Event()
        self._due.set()

    async def embed_drafts(self, drafts: Sequence[KemDraft]) -> Sequence[KemDraft]:
        """The drafts with vectors, if only a few lack one; without, if the embedder fails or takes too long."""
        missing = [at for at, draft in enumerate(drafts) if draft.embeddings is None and draft.content is not None]
        if not 0 < len(missing) <= _MAX_DRAFTS:
            return drafts
        completed = list(drafts)
        vectors = await self._embed_now([drafts[at].content or "" for at in missing])
        for at, vector in zip(missing, vectors, strict=True):
            completed[at] = drafts[at].model_copy(update={"embeddings": vector})
        return completed

    async def embed_changes(self, changes: KemChanges) -> KemChanges:
        """The changes, with a vector of new content."""
        if changes.content is None or changes.embeddings is not None:
            return changes
        (vector,) = await self._embed_now([changes.content])
        return changes.model_copy(update={"embeddings": vector})

    async def drop_other_models(self, space: EmbeddingSpace) -> None:
        """Remove vectors that another model made during a migration, so that they are made anew."""
        is_other_model = and_(KemRow.model != space.model, KemRow.content.is_not(None))
        async with self.database.transaction() as session:
            dropping = update(KemRow).where(is_other_model).values(model=None, vector=None)
            await session.execute(dropping.execution_options(synchronize_session=False))

    def notify(self) -> None:
        """Announce that there may be units without a vector."""
        self._due.set()

    async def step(self) -> None:
        """Wait until there may be units without a vector, then embed a batch. Raises EmbedderFailure, DatabaseAway."""
        await self._due.wait()
        if self.embedder is None:
            self._due.clear()
            return
        query = select(KemRow.id, KemRow.version, KemRow.content).where(_LACKS_VECTOR).order_by(KemRow.id).limit(_BATCH)
        self._due.clear()
        async with self.database.reading() as session:
            rows = (await session.execute(query)).all()
        if not rows:
            return
        self._due.set()
        vectors = await self.embedder.passages([(row.content or b"").decode() for row in rows])
        async with self.database.transaction() as session:
            for row, vector in zip(rows, vectors, strict=True):
                is_unchanged = and_(KemRow.id == row.id, KemRow.version == row.version, _LACKS_VECTOR)
                adding = update(KemRow).where(is_unchanged).values(model=vector.model, vector=vector.raw)
                await session.execute(adding.execution_options(synchronize_session=False))
            await note_vector_writes(session, [row.id for row in rows])

    async def _embed_now(self, texts: Sequence[str]) -> Sequence[Embedding | None]:
        if self.embedder is None:
            return [None for _ in texts]
        try:
            async with asyncio.timeout(_DRAFTS_WITHIN_S):
                return await self.embedder.passages(texts)
        except (EmbedderFailure, TimeoutError) as error:
            logger().warning("stored without a vector for now", reason=str(error) or "the embedder took too long")
            return [None for _ in texts]

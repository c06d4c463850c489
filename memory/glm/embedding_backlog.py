"""Units that come without a vector get one of what they say."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import and_, select, update

from bus_schema.embeddings import Embedding
from bus_schema.glm import KemChanges
from bus_schema.kem import KemDraft
from memory.embedding.embedder import Embedder
from memory.embedding.errors import EmbedderFailure
from memory.embedding.space import EmbeddingSpace
from memory.glm.store import note_vector_writes
from memory.glm.tables import KemRow
from mindbus.logs import logger
from mindbus.sql.database import Database

# Who stores a few of them waits for their vectors, to find them at once; those of many come later.
_FEW = 4
_FEW_WITHIN_S = 5.0
_BATCH = 16

_IS_WANTING = and_(KemRow.model.is_(None), KemRow.content.is_not(None))


class EmbeddingBacklog:
    """A vector changes nothing of what a unit says, hence neither its version nor its time."""

    def __init__(self, database: Database, embedder: Embedder | None) -> None:
        self.database, self.embedder = database, embedder
        self._due = asyncio.Event()
        self._due.set()

    async def filled(self, drafts: Sequence[KemDraft]) -> Sequence[KemDraft]:
        """With vectors, where only a few have none; whatever keeps the embedder, they are stored all the same."""
        wanting = [draft for draft in drafts if draft.embeddings is None and draft.content is not None]
        if not 0 < len(wanting) <= _FEW:
            return drafts
        made = iter(await self._at_once([draft.content or "" for draft in wanting]))
        return [
            draft.model_copy(update={"embeddings": next(made)})
            if draft.embeddings is None and draft.content is not None
            else draft
            for draft in drafts
        ]

    async def changed(self, changes: KemChanges) -> KemChanges:
        """The same for new content."""
        if changes.content is None or changes.embeddings is not None:
            return changes
        (made,) = await self._at_once([changes.content])
        return changes.model_copy(update={"embeddings": made})

    async def forget_others(self, space: EmbeddingSpace) -> None:
        """What another model has made, while memory went over to this one, is made anew."""
        others = and_(KemRow.model != space.model, KemRow.content.is_not(None))
        async with self.database.transaction() as session:
            await session.execute(
                update(KemRow).where(others).values(model=None, vector=None),
                execution_options={"synchronize_session": False},
            )

    def wake(self) -> None:
        """There may be units without a vector."""
        self._due.set()

    async def step(self) -> None:
        """Wait until there may be some, then embed a batch. Raises EmbedderFailure, DatabaseAway."""
        await self._due.wait()
        if self.embedder is None:
            self._due.clear()
            return
        query = select(KemRow.id, KemRow.version, KemRow.content).where(_IS_WANTING).order_by(KemRow.id).limit(_BATCH)
        self._due.clear()
        async with self.database.reading() as session:
            rows = (await session.execute(query)).all()
        if not rows:
            return
        self._due.set()
        vectors = await self.embedder.passages([(row.content or b"").decode() for row in rows])
        async with self.database.transaction() as session:
            for row, vector in zip(rows, vectors, strict=True):
                same = and_(KemRow.id == row.id, KemRow.version == row.version, _IS_WANTING)
                await session.execute(
                    update(KemRow).where(same).values(model=vector.model, vector=vector.raw),
                    execution_options={"synchronize_session": False},
                )
            await note_vector_writes(session, [row.id for row in rows])

    async def _at_once(self, texts: Sequence[str]) -> Sequence[Embedding | None]:
        if self.embedder is None:
            return [None for _ in texts]
        try:
            async with asyncio.timeout(_FEW_WITHIN_S):
                return await self.embedder.passages(texts)
        except (EmbedderFailure, TimeoutError) as trouble:
            logger().warning("stored without a vector for now", reason=str(trouble) or "the embedder took too long")
            return [None for _ in texts]

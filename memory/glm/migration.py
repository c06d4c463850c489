"""Migration to another embedding model while the older one goes on answering."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from sqlalchemy import ColumnElement, and_, case, delete, exists, func, insert, null, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.embeddings import Embedding, ModelName
from bus_schema.glm import ReindexProgress
from config.settings import FleetSettings
from memory.errors import AnotherModel
from memory.glm.service import open_vector_index, space_in_use, space_row
from memory.glm.tables import KemRow, NextVectorRow, as_kem
from memory.rights import readers_of
from memory.vectors.index import VectorIndex, point_of
from mindbus.sql.database import Database
from retrieval.embedding.embedder import Embedder
from retrieval.embedding.selection import configured_embedder

_BATCH = 32
_POINTS = 500

# Text of a unit; None if it cannot be had: such a unit is left without a vector.
TextOf = Callable[[KemRow], Awaitable[str | None]]


async def own_text(row: KemRow) -> str | None:
    return None if row.content is None else row.content.decode()


class Reindexing:
    """Collects new vectors beside the units until all have one; then one transaction replaces the older ones.

    `embedder` and `index` are the new model's, both open. It may be stopped anywhere: the next run resumes.

    The new index is filled before, so that it is never searched half full; later changes reach it by the relay's
    reconcile. One reindexing runs at a time; with another model than the last attempt's it starts from the beginning.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        index: VectorIndex,
        text_of: TextOf = own_text,
        batch: int = _BATCH,
    ) -> None:
        self.database, self.embedder, self.index = database, embedder, index
        self._text_of, self._batch = text_of, batch

    async def run(self) -> AsyncIterator[ReindexProgress]:
        """Run to the end. Raises EmbedderFailure, IndexAway, DatabaseAway; what is done by then is kept."""
        async with self.database.transaction() as session:
            await session.execute(delete(NextVectorRow).where(NextVectorRow.model != self.embedder.space.model))
        # None: an earlier attempt may have left the index incomplete, so all units are written.
        to_index: set[str] | None = None
        while True:
            async for progress, kem_ids in self._steps():
                if to_index is not None:
                    to_index |= kem_ids
                yield progress
            await self._fill_index(to_index)
            if await self._switch():
                return
            to_index = set()

    async def progress(self) -> ReindexProgress:
        """Number of units with a vector of the new model. Raises DatabaseAway."""
        model = self.embedder.space.model
        async with self.database.reading() as session:
            total = await session.scalar(select(func.count()).select_from(KemRow)) or 0
            done = await session.scalar(select(func.count()).select_from(KemRow).where(_is_ready(model))) or 0
        return ReindexProgress(model=model, done=done, total=total)

    async def _steps(self) -> AsyncIterator[tuple[ReindexProgress, set[str]]]:
        last = ""
        while True:
            rows = await self._waiting(last)
            if rows:
                vectors = await self._embed(rows)
                async with self.database.transaction() as session:
                    await self._save(session, rows, vectors)
                yield await self.progress(), {row.id for row in rows}
            elif not last:
                return
            # From the first unit again, for those that have changed meanwhile.
            last = rows[-1].id if rows else ""

    async def _waiting(self, last: str) -> Sequence[KemRow]:
        query = select(KemRow).where(KemRow.id > last, ~_is_ready(self.embedder.space.model))
        async with self.database.reading() as session:
            return (await session.scalars(query.order_by(KemRow.id).limit(self._batch))).all()

    async def _embed(self, rows: Sequence[KemRow]) -> list[Embedding | None]:
        texts = [await self._text_of(row) for row in rows]
        vectors = iter(await self.embedder.passages([text for text in texts if text is not None]))
        return [None if text is None else next(vectors) for text in texts]

    async def _save(self, session: AsyncSession, rows: Sequence[KemRow], vectors: Sequence[Embedding | None]) -> None:
        # Units may have been deleted meanwhile.
        existing = set(await session.scalars(select(KemRow.id).where(KemRow.id.in_([row.id for row in rows]))))
        vectors_of_rows = [
            {
                "kem_id": row.id,
                "version": row.version,
                "model": self.embedder.space.model,
                "vector": None if vector is None else vector.raw,
            }
            for row, vector in zip(rows, vectors, strict=True)
            if row.id in existing
        ]
        await session.execute(delete(NextVectorRow).where(NextVectorRow.kem_id.in_(existing)))
        if vectors_of_rows:
            await session.execute(insert(NextVectorRow), vectors_of_rows)

    async def _fill_index(self, only: set[str] | None) -> None:
        """Write all ready units to the new index, or `only` these."""
        ready = and_(NextVectorRow.kem_id == KemRow.id, NextVectorRow.version == KemRow.version)
        query = select(KemRow, NextVectorRow.vector).join(NextVectorRow, ready).order_by(KemRow.id).limit(_POINTS)
        last = ""
        while True:
            async with self.database.reading() as session:
                rows = (await session.execute(query.where(KemRow.id > last))).all()
            if not rows:
                return
            selected = [(row, vector) for row, vector in rows if only is None or row.id in only]
            points = [point_of(as_kem(row), vector, readers_of(row)) for row, vector in selected if vector is not None]
            await self.index.write(points, [row.id for row, vector in selected if vector is None])
            last = rows[-1][0].id

    async def _switch(self) -> bool:
        """Switch the rows to the new vectors; False if a unit has come or changed since, and nothing is switched."""
        async with self.database.transaction() as session:
            if not self.database.is_sqlite:
                # SQLite has one writer anyway.
                await session.execute(text("LOCK TABLE kems IN SHARE ROW EXCLUSIVE MODE"))
            waiting = select(KemRow.id).where(~_is_ready(self.embedder.space.model)).limit(1)
            if await session.scalar(waiting) is not None:
                return False
            new = select(NextVectorRow.vector).where(NextVectorRow.kem_id == KemRow.id).scalar_subquery()
            model = case((new.is_(None), null()), else_=self.embedder.space.model)
            switching = update(KemRow).values(vector=new, model=model)
            await session.execute(switching.execution_options(synchronize_session=False))
            await session.execute(delete(NextVectorRow))
            await session.merge(space_row(self.embedder.space))
            return True


def _is_ready(model: str) -> ColumnElement[bool]:
    return (
        exists()
        .where(NextVectorRow.kem_id == KemRow.id, NextVectorRow.version == KemRow.version, NextVectorRow.model == model)
        .correlate(KemRow)
    )


class ModelMigration:
    """Runs a reindexing for a limited time per call; it continues at the next call, also after a restart."""

    def __init__(self, database: Database, settings: FleetSettings, text_of: TextOf = own_text) -> None:
        self.database, self.settings, self._text_of = database, settings, text_of
        self._lock = asyncio.Lock()
        self._steps: AsyncGenerator[ReindexProgress] | None = None

    async def advance(self, model: ModelName, within_s: float) -> ReindexProgress:
        """Continue for so long; complete when `done == total`. Raises AnotherModel, EmbedderFailure, IndexAway."""
        if model != self.settings.embedding_model:
            raise AnotherModel(model=model, expected=self.settings.embedding_model)
        async with self._lock:
            deadline = asyncio.get_running_loop().time() + within_s
            self._steps = self._steps or self._move()
            try:
                async for progress in self._steps:
                    if progress.done < progress.total and asyncio.get_running_loop().time() > deadline:
                        return progress
            except BaseException:
                await self._end_steps()
                raise
            await self._end_steps()
        async with self.database.reading() as session:
            total = await session.scalar(select(func.count()).select_from(KemRow)) or 0
        return ReindexProgress(model=model, done=total, total=total)

    async def _move(self) -> AsyncGenerator[ReindexProgress]:
        current = await space_in_use(self.database)
        async with AsyncExitStack() as stack:
            embedder = await configured_embedder(self.settings)
            stack.push_async_callback(embedder.close)
            if embedder.space == current:
                return
            index = open_vector_index(self.settings, "glm", embedder.space)
            stack.push_async_callback(index.close)
            await index.open()
            async for progress in Reindexing(self.database, embedder, index, self._text_of).run():
                yield progress

    async def _end_steps(self) -> None:
        steps, self._steps = self._steps, None
        if steps is not None:
            await steps.aclose()

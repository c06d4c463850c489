"""Memory goes over to the model that the settings name, a portion at a time."""

import asyncio
from collections.abc import AsyncGenerator

from sqlalchemy import func, select

from bus_schema.embeddings import ModelName
from bus_schema.glm import ReindexProgress
from memory.embedding.configured import configured_embedder
from memory.errors import AnotherModel
from memory.glm.reindexing import Reindexing, TextOf, own_text
from memory.glm.spaces import space_in_use
from memory.glm.tables import KemRow
from memory.vectors.opening import index_of
from mindbus.settings import Settings
from mindbus.sql.database import Database


class Moving:
    """Whoever asks again has it go on; so does whoever asks after a restart, since what is done is in the rows."""

    def __init__(self, database: Database, settings: Settings, text_of: TextOf = own_text) -> None:
        self.database, self.settings, self._text_of = database, settings, text_of
        self._turn = asyncio.Lock()
        self._steps: AsyncGenerator[ReindexProgress] | None = None

    async def advance(self, model: ModelName, within_s: float) -> ReindexProgress:
        """All is done once as much is done as there is. Raises AnotherModel, EmbedderFailure, IndexAway."""
        if model != self.settings.embedding_model:
            raise AnotherModel(model=model, expected=self.settings.embedding_model)
        async with self._turn:
            until = asyncio.get_running_loop().time() + within_s
            self._steps = self._steps or self._move()
            try:
                async for progress in self._steps:
                    if progress.done < progress.total and asyncio.get_running_loop().time() > until:
                        return progress
            except BaseException:
                await self._forget()
                raise
            await self._forget()
        async with self.database.reading() as session:
            total = await session.scalar(select(func.count()).select_from(KemRow)) or 0
        return ReindexProgress(model=model, done=total, total=total)

    async def _move(self) -> AsyncGenerator[ReindexProgress]:
        known = await space_in_use(self.database)
        embedder = await configured_embedder(self.settings)
        try:
            if embedder.space == known:
                return
            index = index_of(self.settings, "glm", embedder.space)
            try:
                await index.open()
                reindexing = Reindexing(self.database, embedder, index, self._text_of)
                async for progress in reindexing.run():
                    yield progress
            finally:
                await index.close()
        finally:
            await embedder.close()

    async def _forget(self) -> None:
        steps, self._steps = self._steps, None
        if steps is not None:
            await steps.aclose()

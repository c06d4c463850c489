"""The global memory: the worker, composed of the routers in this folder."""

import asyncio
from collections.abc import Awaitable, Callable

from config.settings import FleetSettings
from memory.embedding.errors import EmbedderFailure
from memory.glm.migration import ModelMigration
from memory.glm.service import GlobalMemory, database_of, open_memory
from memory.vectors.index import IndexAway
from mindbus.bus.handlers import background
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.leadership import single_writer
from workers.glm.current_memory import CurrentMemory
from workers.glm.maintenance import MemoryMaintenance
from workers.glm.texts import Texts
from workers.glm.units import KemHandlers
from workers.kem_drafts import DraftReader

_AGAIN_S = 1.0
_EMBED_AGAIN_S = 10.0


class GlmWorker(Worker):
    """The only writer of units, and the only judge of who may read them."""

    name = "glm"
    start_stage = 0

    def __init__(
        self, database: Database, opening: Callable[[], Awaitable[GlobalMemory]], context: WorkerContext
    ) -> None:
        self._database, self._texts, self._current = database, Texts(context), CurrentMemory(opening)
        self.inbox = inbox = SqlInbox(database)
        self.leadership = single_writer(database)
        self.include(
            KemHandlers(self._current, DraftReader(context)),
            MemoryMaintenance(
                self._current, inbox, ModelMigration(database, context.settings_as(FleetSettings), self._texts.of)
            ),
        )

    @property
    def memory(self) -> GlobalMemory:
        """The memory that answers now."""
        return self._current.memory

    async def start(self) -> None:
        """Refuse to start rather than answer from half a memory: what raises here says what to do."""
        await self._current.open()

    async def stop(self) -> None:
        """Close database, index and reading process."""
        await self._current.close()
        await self._texts.close()
        await self._database.dispose()

    @background(pause_s=0.05)
    async def sync_index(self) -> None:
        """Write vectors to the index after each commit; while the index is unavailable, they wait in the rows."""
        try:
            await self.memory.index_sync.step()
        except IndexAway as error:
            logger().warning("vectors wait", reason=str(error))
            await asyncio.sleep(_AGAIN_S)

    @background(pause_s=0.05)
    async def embed(self) -> None:
        """Embed units without a vector; while the embedder is unavailable, they are found by their words."""
        try:
            await self.memory.backlog.step()
        except EmbedderFailure as error:
            logger().warning("units wait for their vectors", reason=str(error))
            await asyncio.sleep(_EMBED_AGAIN_S)
        else:
            self.memory.index_sync.notify()


def open_glm(context: WorkerContext) -> GlmWorker:
    """The global memory over its own database."""
    database = database_of(context.settings_as(FleetSettings))
    return GlmWorker(
        database, lambda: open_memory(database, context.settings_as(FleetSettings), context.clock), context
    )

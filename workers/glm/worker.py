"""The global memory: one worker made of the desks in this folder."""

import asyncio
from collections.abc import Awaitable, Callable

from config.settings import FleetSettings
from memory.embedding.errors import EmbedderFailure
from memory.glm.migration import ModelMigration
from memory.glm.service import GlobalMemory, database_of, open_memory
from memory.vectors.index import IndexAway
from mindbus.bus.handlers import every
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.logs import logger
from mindbus.sql.database import Database, DatabaseAway
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.leadership import single_writer
from workers.glm.care import CareDesk
from workers.glm.texts import Texts
from workers.glm.units import UnitDesk
from workers.kem_drafts import DraftReader

_AGAIN_S = 1.0
_EMBED_AGAIN_S = 10.0
_LAST_WITHIN_S = 5.0


class GlmWorker(UnitDesk, CareDesk, Worker):
    """The only one who writes units; the only one who decides who reads them."""

    name = "glm"
    start_stage = 0

    def __init__(
        self, database: Database, opening: Callable[[], Awaitable[GlobalMemory]], context: WorkerContext
    ) -> None:
        self.drafts, self._texts = DraftReader(context), Texts(context)
        self.moving, self.go_over = (
            ModelMigration(database, context.settings_as(FleetSettings), self._texts.of),
            self._go_over,
        )
        self._database, self._opening = database, opening
        self._opened: GlobalMemory | None = None
        self.inbox = self.remembered = SqlInbox(database)
        self.leadership = single_writer(database)

    async def start(self) -> None:
        """Refuse to start rather than answer from half a memory: what raises here says what to do."""
        await self._close()
        self.memory = self._opened = await self._opening()

    async def stop(self) -> None:
        """Let go of database, index and reading process."""
        await self._close()
        await self._texts.close()
        await self._database.dispose()

    @every(seconds=0.05)
    async def follow(self) -> None:
        """Carry vectors after each commit; while the index is away, they wait in the rows."""
        try:
            await self.memory.index_sync.step()
        except (IndexAway, DatabaseAway) as away:
            logger().warning("vectors wait", reason=str(away))
            await asyncio.sleep(_AGAIN_S)

    @every(seconds=0.05)
    async def fill(self) -> None:
        """Embed what came without a vector; while the embedder is away, such units are found by their words."""
        try:
            await self.memory.backlog.step()
        except EmbedderFailure as failure:
            logger().warning("units wait for their vectors", reason=str(failure))
            await asyncio.sleep(_EMBED_AGAIN_S)
        except DatabaseAway as away:
            logger().warning("units wait for their vectors", reason=str(away))
            await asyncio.sleep(_AGAIN_S)
        else:
            self.memory.index_sync.notify()

    async def _go_over(self) -> None:
        """Answer from what memory has become; whoever still follows the older one is to look up."""
        older, self.memory = self.memory, await self._opening()
        self._opened = self.memory
        older.notify()
        await older.index_sync.catch_up(_LAST_WITHIN_S)
        await older.index.clear()
        await older.close()
        await self.memory.relay.reconcile()

    async def _close(self) -> None:
        if self._opened is not None:
            await self._opened.close()


def open_glm(context: WorkerContext) -> GlmWorker:
    """The global memory over its own database."""
    database = database_of(context.settings_as(FleetSettings))
    return GlmWorker(
        database, lambda: open_memory(database, context.settings_as(FleetSettings), context.clock), context
    )

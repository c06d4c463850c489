"""The global memory: one worker made of the desks in this folder."""

import asyncio
from collections.abc import Awaitable, Callable

from memory.glm.service import GlobalMemory, database_of, open_memory
from memory.vectors.index import IndexAway
from mindbus.bus.handlers import every
from mindbus.bus.worker import Kit, Worker
from mindbus.logs import logger
from mindbus.sql.database import Database, DatabaseAway
from mindbus.sql.leadership import single_writer
from mindbus.sql.ledger import SqlLedger
from workers.glm.care import CareDesk
from workers.glm.drafts import Drafts
from workers.glm.units import UnitDesk

_AGAIN_S = 1.0


class GlmWorker(UnitDesk, CareDesk, Worker):
    """The only one who writes units; the only one who decides who reads them."""

    name = "glm"

    def __init__(self, database: Database, opening: Callable[[], Awaitable[GlobalMemory]], drafts: Drafts) -> None:
        self.drafts = drafts
        self._database, self._opening = database, opening
        self._opened: GlobalMemory | None = None
        self.ledger = self.remembered = SqlLedger(database)
        self.leadership = single_writer(database)

    async def start(self) -> None:
        """Refuse to start rather than answer from half a memory: what raises here says what to do."""
        await self._close()
        self.memory = self._opened = await self._opening()

    async def stop(self) -> None:
        """Let go of database and index."""
        await self._close()
        await self._database.dispose()

    @every(seconds=0.05)
    async def follow(self) -> None:
        """Carry vectors after each commit; while the index is away, they wait in the rows."""
        try:
            await self.memory.following.step()
        except (IndexAway, DatabaseAway) as away:
            logger().warning("vectors wait", reason=str(away))
            await asyncio.sleep(_AGAIN_S)

    async def _close(self) -> None:
        if self._opened is not None:
            await self._opened.index.close()


def open_glm(kit: Kit) -> GlmWorker:
    """The global memory over its own database."""
    database = database_of(kit.settings)
    return GlmWorker(database, lambda: open_memory(database, kit.settings, kit.clock), Drafts(kit))

"""Long-term memory: the worker, composed of the routers in this folder."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from config.settings import FleetSettings
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import MIGRATIONS
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.conversations import Conversations
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.leadership import single_writer
from mindbus.sql.migrations import upgrade
from retrieval.embedding.embedder import Embedder
from retrieval.embedding.selection import configured_embedder
from workers.lsm.episodes import EpisodeHandlers, EpisodeMaintenance, EpisodeSearchHandlers
from workers.lsm.message_log import Gaps, MessageLogHandlers


class LsmWorker(Worker):
    """The only writer of episodes and of the log of messages."""

    name = "lsm"
    start_stage = 0

    def __init__(self, database: Database, context: WorkerContext, opening: Callable[[], Awaitable[Embedder]]) -> None:
        settings = context.settings_as(FleetSettings)
        self._artifacts = open_artifacts(context.bus, settings, context.clock)
        self.memory = LongTermMemory(database, settings, context.clock, self._artifacts)
        self.search = EpisodeSearch(self.memory, settings, opening)
        conversations = Conversations(context.bus, self._artifacts, largest_inline_bytes=settings.max_body_bytes // 2)
        self._gaps = Gaps(context.bus, conversations, self.memory, timedelta(seconds=settings.lsm_gap_check_s))
        self.inbox = inbox = SqlInbox(database)
        self.leadership = single_writer(database)
        self.include(
            MessageLogHandlers(self.memory, conversations, self._gaps),
            EpisodeHandlers(self.memory),
            EpisodeSearchHandlers(self.memory, self.search),
            EpisodeMaintenance(self.memory, self.search, inbox),
        )

    async def start(self) -> None:
        await upgrade(self.memory.database, MIGRATIONS)
        await self._artifacts.start()
        self._gaps.begin()

    async def stop(self) -> None:
        await self.search.close()
        await self._artifacts.stop()
        await self.memory.database.dispose()


def open_lsm(context: WorkerContext) -> LsmWorker:
    return lsm_with(lambda: configured_embedder(context.settings_as(FleetSettings)), context)


def lsm_with(opening: Callable[[], Awaitable[Embedder]], context: WorkerContext) -> LsmWorker:
    return LsmWorker(Database(context.settings_as(FleetSettings).database_of("lsm"), "lsm"), context, opening)

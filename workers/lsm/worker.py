"""Long-term memory: one worker made of the desks in this folder."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from config.settings import FleetSettings
from memory.embedding.embedder import Embedder
from memory.embedding.selection import configured_embedder
from memory.lsm.search.service import search_over
from memory.lsm.service import memory_over
from memory.lsm.tables import MIGRATIONS
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.conversations import Conversations
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.leadership import single_writer
from mindbus.sql.migrations import upgrade
from workers.lsm.care import CareDesk
from workers.lsm.episodes import EpisodeDesk
from workers.lsm.gaps import Gaps
from workers.lsm.recording import RecordingDesk
from workers.lsm.searching import SearchDesk


class LsmWorker(RecordingDesk, EpisodeDesk, SearchDesk, CareDesk, Worker):
    """The only one who writes episodes; what was said is in its log for good."""

    name = "lsm"
    start_stage = 0

    def __init__(self, database: Database, context: WorkerContext, opening: Callable[[], Awaitable[Embedder]]) -> None:
        self.memory = memory_over(database, context.settings_as(FleetSettings), context.clock)
        self.search = search_over(self.memory, context.settings_as(FleetSettings), opening)
        self._artifacts = open_artifacts(context.bus, context.settings_as(FleetSettings), context.clock)
        self.conversations = Conversations(
            context.bus, self._artifacts, largest_inline_bytes=context.settings_as(FleetSettings).max_body_bytes // 2
        )
        interval = timedelta(seconds=context.settings_as(FleetSettings).lsm_gap_check_s)
        self.gaps = Gaps(context.bus, self.conversations, self.memory, interval)
        self.inbox = self.remembered = SqlInbox(database)
        self.leadership = single_writer(database)

    async def start(self) -> None:
        """Bring the tables up to date; open the way to what is told by pointer."""
        await upgrade(self.memory.database, MIGRATIONS)
        await self._artifacts.start()
        self.gaps.begin()

    async def stop(self) -> None:
        """Let go of everything."""
        await self.search.close()
        await self._artifacts.stop()
        await self.memory.database.dispose()


def open_lsm(context: WorkerContext) -> LsmWorker:
    """Long-term memory over its own database."""
    return lsm_with(lambda: configured_embedder(context.settings_as(FleetSettings)), context)


def lsm_with(opening: Callable[[], Awaitable[Embedder]], context: WorkerContext) -> LsmWorker:
    """The same with an embedder of one's own."""
    return LsmWorker(Database(context.settings_as(FleetSettings).database_of("lsm"), "lsm"), context, opening)

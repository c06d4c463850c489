"""The working memory: one worker made of the desks in this folder."""

from config.settings import FleetSettings
from memory.swm.cache import BufferedCache, CacheAway, EmbeddedCache, KemCache
from memory.swm.cache_sync import CacheSync
from memory.swm.coordination import coordination_in
from memory.swm.lock_queue import MAX_WAITING, LockQueue
from memory.swm.redis_cache import RedisCache
from memory.swm.subscriptions import Subscriptions
from memory.swm.tables import MIGRATIONS
from memory.swm.working_memory import WorkingMemory
from memory.swm.write_queue import KemWriteQueue
from mindbus.bus.handlers import every
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.leadership import single_writer
from mindbus.sql.migrations import upgrade
from workers.kem_drafts import DraftReader
from workers.swm.coordination import CoordinationDesk
from workers.swm.data import DataDesk
from workers.swm.glm_link import GlmLink
from workers.swm.knowledge import KnowledgeDesk
from workers.swm.subscribing import SubscribingDesk


class SwmWorker(KnowledgeDesk, SubscribingDesk, CoordinationDesk, DataDesk, Worker):
    """What agents share at once, who hears of it, who may go first.

    What it does may be done twice, for each store knows its own repetitions: so it has no inbox in its database, whose
    transaction would last as long as somebody waits for a lock.
    """

    name = "swm"
    start_stage = 0
    # Those who wait for locks must not keep out those who let go of them.
    concurrency = 2 * MAX_WAITING

    def __init__(self, context: WorkerContext) -> None:
        settings, self.clock, self.bus = context.settings_as(FleetSettings), context.clock, context.bus
        self.drafts = DraftReader(context)
        self._database = Database(settings.database_of("swm"), "swm")
        self.leadership = single_writer(self._database)
        writes, glm = KemWriteQueue(self._database), GlmLink(context.bus)
        self._shelf = BufferedCache(cache_of(settings), writes)
        self.memory = WorkingMemory(self._shelf, writes, glm, context.clock)
        self.cache_sync = CacheSync(self._shelf, writes, glm)
        self.subscriptions = Subscriptions(self._database)
        self._coordination = coordination_in(settings.redis_url, self._database, context.clock)
        self.locks, self.counters = self._coordination.locks, self._coordination.counters
        self.lock_queue = LockQueue(self.locks, context.clock)

    async def start(self) -> None:
        """Take up what an earlier instance has left: writes on their way, who wants to hear of what."""
        # It may have led before.
        await self._close()
        await upgrade(self._database, MIGRATIONS)
        await self._coordination.open()
        await self._shelf.open()
        await self.cache_sync.refill()
        await self.subscriptions.open()

    async def stop(self) -> None:
        """Let go of everything."""
        await self._close()
        await self._database.dispose()

    @every(seconds=0.5)
    async def catch_up(self) -> None:
        try:
            await self._shelf.catch_up()
        except CacheAway as away:
            logger().debug("writes wait for the cache", reason=str(away))

    async def _close(self) -> None:
        await self._shelf.cache.close()
        await self._coordination.close()


def cache_of(settings: FleetSettings) -> KemCache:
    """The cache that the settings name."""
    keys = [key.strip() for key in settings.swm_indexed_keys.split(",") if key.strip()]
    if settings.cache_redis_url is None:
        return EmbeddedCache(settings.swm_max_bytes, keys, settings.swm_eviction)
    return RedisCache(settings.cache_redis_url, keys, settings.swm_eviction, settings.swm_ttl_s)

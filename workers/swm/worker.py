"""Worker of shared working memory, composed of the routers in this folder."""

from collections.abc import Callable
from datetime import datetime, timedelta

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.swm import (
    AcquireLock,
    Count,
    GetCounter,
    GetLockInfo,
    IncrementCounter,
    Lock,
    LockInfo,
    ReleaseLock,
    RenewLock,
)
from config.settings import FleetSettings
from memory.swm.cache import BufferedCache, CacheAway, EmbeddedCache, KemCache
from memory.swm.cache_sync import CacheSync
from memory.swm.coordination import MAX_WAITING, CoordinationStore, LockQueue, LockRequest
from memory.swm.sql_coordination import SqlCoordination
from memory.swm.subscriptions import Subscriptions
from memory.swm.tables import MIGRATIONS
from memory.swm.working_memory import WorkingMemory
from memory.swm.write_queue import KemWriteQueue
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import background, every, on_command
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.leadership import single_writer
from mindbus.sql.migrations import upgrade
from workers.kem_drafts import DraftReader
from workers.swm.units import GlmLink, Notification, SharedKemHandlers, SubscriptionHandlers, notifications_of


class SwmWorker(Worker):
    """Units that agents share, subscriptions to them, locks and counters.

    Every effect may be repeated, since each store knows its own repetitions: so it has no inbox in its database, whose
    transaction would last as long as somebody waits for a lock.
    """

    name = "swm"
    start_stage = 0
    # Waiting for a lock must not keep out its release.
    concurrency = 2 * MAX_WAITING

    def __init__(self, context: WorkerContext) -> None:
        settings = context.settings_as(FleetSettings)
        self._database = Database(settings.database_of("swm"), "swm")
        self.leadership = single_writer(self._database)
        writes, glm = KemWriteQueue(self._database), GlmLink(context.bus)
        self._writes = writes
        self._cache = BufferedCache(cache_of(settings), writes)
        self._sync = CacheSync(self._cache, writes, glm)
        self._subscriptions = Subscriptions(self._database)
        self._coordination = _coordination_of(settings, self._database, context.clock)
        self.memory = WorkingMemory(self._cache, writes, glm, context.clock)
        self.include(
            SharedKemHandlers(self.memory, self._sync, self._subscriptions, DraftReader(context)),
            SubscriptionHandlers(context.bus, self._subscriptions),
            CoordinationHandlers(self._coordination, context.clock),
            SharedMemoryErasure(self._coordination, self._sync, self._subscriptions),
        )

    async def start(self) -> None:
        """Take up what an earlier instance has left: queued writes and subscriptions."""
        # It may have led before.
        await self._close()
        await upgrade(self._database, MIGRATIONS)
        await self._coordination.open()
        await self._cache.open()
        await self._sync.refill()
        await self._subscriptions.open()

    async def stop(self) -> None:
        await self._close()
        await self._database.dispose()

    @background(pause_s=0.5)
    async def catch_up(self) -> None:
        try:
            await self._cache.catch_up()
        except CacheAway as error:
            logger().debug("writes wait for the cache", reason=str(error))

    @every(seconds=3600)
    async def forget_published(self) -> None:
        await self._writes.forget_old()

    @every(seconds=60)
    async def truncate_log(self) -> None:
        """Empty SQLite's log, in which deleted text stays until then."""
        await self._database.truncate_log()

    async def _close(self) -> None:
        await self._cache.cache.close()
        await self._coordination.close()


class SharedMemoryErasure:
    """Handlers of erasure; locks end by themselves, and their fencing numbers must go on."""

    def __init__(self, coordination: CoordinationStore, sync: CacheSync, subscriptions: Subscriptions) -> None:
        self._coordination, self._sync, self._subscriptions = coordination, sync, subscriptions

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        counts = await self._sync.clear()
        counts["counters"] = await self._coordination.clear_counters()
        return Removed.of(counts | {"subscriptions": await self._subscriptions.clear()})

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> tuple[Removed | Notification, ...]:
        counts, events = await self._sync.erase_user(command.user_id)
        # Whoever has been told of a unit is told that it is gone.
        told = await notifications_of(events, self._subscriptions)
        counts["subscriptions"] = await self._subscriptions.clear(f"user.{command.user_id}")
        return Removed.of(counts), *told


def cache_of(settings: FleetSettings) -> KemCache:
    keys = [key.strip() for key in settings.swm_indexed_keys.split(",") if key.strip()]
    if settings.cache_redis_url is None:
        return EmbeddedCache(settings.swm_max_bytes, keys, settings.swm_eviction)
    # Its client takes 9 MB and 0.1 s that nobody else needs.
    from memory.swm.redis_cache import RedisCache

    return RedisCache(settings.cache_redis_url, keys, settings.swm_eviction, settings.swm_ttl_s)


def _coordination_of(settings: FleetSettings, database: Database, clock: Callable[[], datetime]) -> CoordinationStore:
    if settings.redis_url is None:
        return SqlCoordination(database, clock)
    from memory.swm.redis_coordination import RedisCoordination

    return RedisCoordination(settings.redis_url, clock)


class CoordinationHandlers:
    """Handlers of locks and counters."""

    def __init__(self, store: CoordinationStore, clock: Callable[[], datetime]) -> None:
        self._store, self._queue, self._clock = store, LockQueue(store, clock), clock

    @on_command
    async def acquire(self, command: AcquireLock, context: MessageContext) -> Lock:
        lease = timedelta(milliseconds=command.lease_ms)
        request = LockRequest(command.name, context.requester, lease, context.message_id)
        until = self._clock() + timedelta(milliseconds=command.wait_ms)
        # A lock for nobody would keep everybody waiting.
        until = min(until, context.envelope.expirytime or until)
        return await self._queue.acquire(request, until)

    @on_command
    async def renew(self, command: RenewLock) -> Lock:
        return await self._store.renew(command.name, command.token, timedelta(milliseconds=command.lease_ms))

    @on_command
    async def release(self, command: ReleaseLock) -> None:
        await self._store.release(command.name, command.token)
        self._queue.notify_release(command.name)

    @on_command
    async def lock_info(self, query: GetLockInfo) -> LockInfo:
        info = await self._store.lock_info(query.name)
        return info.model_copy(update={"waiting": self._queue.waiting(query.name)})

    @on_command
    async def increment(self, command: IncrementCounter) -> Count:
        return Count(value=await self._store.add(command.name, command.by, command.operation_id))

    @on_command
    async def counter_value(self, query: GetCounter) -> Count:
        return Count(value=await self._store.value(query.name))

    @every(seconds=3600)
    async def forget_old(self) -> None:
        await self._store.forget_old()

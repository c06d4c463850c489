"""Coordination: locks and counters."""

from collections.abc import Callable
from datetime import datetime, timedelta

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
from memory.swm.coordination import CoordinationStore, LockQueue, LockRequest
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import every, on_command


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
        self._queue.released(command.name)

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

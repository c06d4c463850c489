"""Answers for locks, for counters."""

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
from memory.swm.lock_queue import LockQueue
from memory.swm.stores import Addition, CounterStore, LockRequest, LockStore
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import every, on_command
from workers.swm.answering import answering


class CoordinationDesk:
    """The part of the working memory by which agents keep out of each other's way."""

    clock: Callable[[], datetime]
    locks: LockStore
    lock_queue: LockQueue
    counters: CounterStore

    @on_command
    async def acquire(self, command: AcquireLock, context: MessageContext) -> Lock:
        lease = timedelta(milliseconds=command.lease_ms)
        want = LockRequest(command.name, context.requester, lease, context.message_id)
        until = self.clock() + timedelta(milliseconds=command.wait_ms)
        # A lock for nobody would keep everybody waiting.
        until = min(until, context.envelope.expirytime or until)
        with answering(context):
            return await self.lock_queue.acquire(want, until)

    @on_command
    async def renew(self, command: RenewLock, context: MessageContext) -> Lock:
        with answering(context):
            return await self.locks.renew(command.name, command.token, timedelta(milliseconds=command.lease_ms))

    @on_command
    async def release(self, command: ReleaseLock, context: MessageContext) -> None:
        with answering(context):
            await self.locks.release(command.name, command.token)
        self.lock_queue.released(command.name)

    @on_command
    async def look_at_lock(self, query: GetLockInfo, context: MessageContext) -> LockInfo:
        with answering(context):
            info = await self.locks.info(query.name)
        return info.model_copy(update={"waiting": self.lock_queue.waiting(query.name)})

    @on_command
    async def increment(self, command: IncrementCounter, context: MessageContext) -> Count:
        with answering(context):
            return Count(value=await self.counters.add(Addition(command.name, command.by, command.operation_id)))

    @on_command
    async def look_at_counter(self, query: GetCounter, context: MessageContext) -> Count:
        with answering(context):
            return Count(value=await self.counters.value(query.name))

    @every(seconds=3600)
    async def forget_old(self) -> None:
        await self.counters.forget_old()

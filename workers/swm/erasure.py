"""SharedMemoryErasure of data in shared memory."""

from bus_schema.data import ClearData, DeleteUser, Removed
from memory.swm.cache_sync import CacheSync
from memory.swm.stores import CounterStore
from memory.swm.subscriptions import Subscriptions
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command


class SharedMemoryErasure:
    """Handlers of erasure; locks end by themselves, and their fencing numbers must go on."""

    def __init__(self, counters: CounterStore, sync: CacheSync, subscriptions: Subscriptions) -> None:
        self._counters, self._sync, self._subscriptions = counters, sync, subscriptions

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        context.require_operator()
        counts = await self._sync.clear()
        counts["counters"] = await self._counters.clear()
        return Removed.of(counts | {"subscriptions": await self._subscriptions.clear()})

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        context.require_operator()
        counts = await self._sync.erase_user(command.user_id)
        return Removed.of(counts | {"subscriptions": await self._subscriptions.clear(f"user.{command.user_id}")})

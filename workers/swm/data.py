"""Answers those who want data gone."""

from collections.abc import Awaitable

from bus_schema.data import ClearData, DeleteUser, Removed
from memory.swm.cache import CacheAway
from memory.swm.cache_sync import CacheSync
from memory.swm.stores import CounterStore
from memory.swm.subscriptions import Subscriptions
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.errors import TemporaryFailure
from workers.swm.answering import answering


class DataDesk:
    """The part of the working memory that forgets; locks end by themselves, their fencing numbers must go on."""

    counters: CounterStore
    cache_sync: CacheSync
    subscriptions: Subscriptions

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        context.require_operator()
        counts = await _away_or(self.cache_sync.clear())
        with answering(context):
            counts["counters"] = await self.counters.clear()
        return Removed.of(counts | {"subscriptions": await self.subscriptions.clear()})

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        context.require_operator()
        counts = await _away_or(self.cache_sync.erase_user(command.user_id))
        return Removed.of(counts | {"subscriptions": await self.subscriptions.clear(f"user.{command.user_id}")})


async def _away_or(work: Awaitable[dict[str, int]]) -> dict[str, int]:
    try:
        return await work
    except CacheAway as away:
        raise TemporaryFailure(str(away)) from away

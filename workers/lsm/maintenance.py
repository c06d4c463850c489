"""EpisodeMaintenance of long-term memory: statistics, retention of searches, erasure."""

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from bus_schema.lsm import UnpackEpisode
from bus_schema.lsm_statistics import EpisodeStats, GetEpisodeStats, GetLayerHistory, LayerHistory
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import every, on_command
from mindbus.sql.inbox import SqlInbox

# Unpacked content does not name its user, so all such replies are emptied: nobody waits for one so long.
_UNPACKED = UnpackEpisode.wire.type.replace("mb.cmd.", "mb.rpl.", 1)


class EpisodeMaintenance:
    """Handlers of operators: counts, layer history, erasure."""

    def __init__(self, memory: LongTermMemory, inbox: SqlInbox) -> None:
        self._memory, self._inbox = memory, inbox

    @on_command
    async def stats(self, query: GetEpisodeStats) -> EpisodeStats:
        return await self._memory.statistics.count(query.chat_id)

    @on_command
    async def layer_history(self, query: GetLayerHistory) -> LayerHistory:
        return await self._memory.statistics.layer_history(query, self._memory.clock())

    @every(seconds=60)
    async def forget_searches(self) -> None:
        await self._memory.search_retention.step(self._memory.clock())

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        context.require_operator()
        counts = await self._memory.erasure.clear()
        await self._inbox.forget()
        return Removed.of(counts)

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        """Erase everything said with the user, outcomes in the inbox included."""
        context.require_operator()
        counts = await self._memory.erasure.erase(command.user_id)
        user_id = command.user_id
        await self._inbox.forget(user_id, conversation_trace(user_id), _UNPACKED)
        return Removed.of(counts)

"""Answers those who look after long-term memory, or want something gone from it."""

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from bus_schema.lsm import UnpackEpisode
from bus_schema.lsm_statistics import EpisodeStats, GetEpisodeStats, GetLayerHistory, LayerHistory
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import every, on_command
from mindbus.sql.inbox import SqlInbox
from workers.lsm.answering import answering

# What was unpacked says whose it is nowhere, so all such answers are emptied: nobody waits for one so long.
_UNPACKED = UnpackEpisode.wire.type.replace("mb.cmd.", "mb.rpl.", 1)


class CareDesk:
    """The part of long-term memory that counts and forgets."""

    memory: LongTermMemory
    remembered: SqlInbox

    @on_command
    async def stats(self, query: GetEpisodeStats, context: MessageContext) -> EpisodeStats:
        with answering(context):
            return await self.memory.statistics.count(query.chat_id)

    @on_command
    async def layer_history(self, query: GetLayerHistory, context: MessageContext) -> LayerHistory:
        with answering(context):
            return await self.memory.statistics.layer_history(query, self.memory.clock())

    @every(seconds=60)
    async def forget_searches(self) -> None:
        """Those that nobody has said anything of for long."""
        await self.memory.search_retention.step(self.memory.clock())

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        context.require_operator()
        counts = await self.memory.erasure.clear()
        await self.remembered.forget()
        return Removed.of(counts)

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        """All that was said with the user, also what is still on its way out."""
        context.require_operator()
        counts = await self.memory.erasure.erase(command.user_id)
        user_id = command.user_id
        await self.remembered.forget(user_id, conversation_trace(user_id), _UNPACKED)
        return Removed.of(counts)

"""Answers for episodes: reads them, unpacks them, marks them, has them packed."""

from bus_schema.dialogue import conversation_trace
from bus_schema.episodes import Episode, EpisodeHead, HotContent
from bus_schema.lsm import EpisodePage, GetEpisode, ListEpisodes, SetAnchor, UnpackEpisode
from bus_schema.lsm_packing import ApplyPack, DueEpisodes, GetDueEpisodes
from bus_schema.lsm_search import FoundEpisodes, GetHotEpisodes
from bus_schema.lsm_statistics import ExplainedEpisode, ExplainEpisode
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, on_command
from workers.lsm.answering import answering


class EpisodeDesk:
    """The part of long-term memory that knows episodes; whoever names no time means now."""

    memory: LongTermMemory

    @on_command
    async def get_episode(self, query: GetEpisode, context: MessageContext) -> Episode:
        with answering(context, query.episode_id):
            return await self.memory.queries.episode(query.episode_id, query.at or self.memory.clock())

    @on_command
    async def explain_episode(self, query: ExplainEpisode, context: MessageContext) -> ExplainedEpisode:
        with answering(context, query.episode_id):
            return await self.memory.queries.explained(query.episode_id, query.at or self.memory.clock())

    @on_command
    async def list_episodes(self, query: ListEpisodes, context: MessageContext) -> EpisodePage:
        with answering(context):
            return await self.memory.queries.page(query, query.at or self.memory.clock())

    @on_command
    async def get_hot(self, query: GetHotEpisodes, context: MessageContext) -> FoundEpisodes:
        with answering(context):
            return await self.memory.queries.hot(query)

    @on_command
    async def get_due(self, query: GetDueEpisodes, context: MessageContext) -> DueEpisodes:
        with answering(context):
            return await self.memory.schedule.due(query.at or self.memory.clock(), query.after, query.limit)

    @on_command
    async def apply_pack(self, command: ApplyPack, context: MessageContext) -> tuple[EpisodeHead | Publish, ...]:
        with answering(context, command.episode_id):
            head, packed = await self.memory.packs.apply(command, command.at or self.memory.clock())
        return (head,) if packed is None else (head, Publish(packed, conversation_trace(head.chat_id)))

    @on_command
    async def unpack(self, command: UnpackEpisode, context: MessageContext) -> tuple[HotContent | Publish, ...]:
        with answering(context, command.episode_id):
            content, woken = await self.memory.reactivation.unpack(
                command.episode_id, command.at or self.memory.clock()
            )
        return (content,) if woken is None else (content, Publish(woken, conversation_trace(woken.chat_id)))

    @on_command
    async def set_anchor(self, command: SetAnchor, context: MessageContext) -> tuple[EpisodeHead | Publish, ...]:
        with answering(context, command.episode_id):
            head, events = await self.memory.reactivation.set_anchor(command, self.memory.clock())
        return head, *(Publish(event, conversation_trace(head.chat_id)) for event in events)

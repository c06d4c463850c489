"""Answers for episodes: reads them, unpacks them, marks them, has them packed."""

from bus_schema.dialogue import conversation_trace
from bus_schema.episodes import Episode, EpisodeHead, HotContent
from bus_schema.lsm import EpisodePage, GetEpisode, ListEpisodes, SetAnchor, UnpackEpisode
from bus_schema.lsm_care import ExplainedEpisode, ExplainEpisode
from bus_schema.lsm_packing import ApplyPack, DueEpisodes, GetDueEpisodes
from bus_schema.lsm_search import FoundEpisodes, GetHotEpisodes
from memory.lsm.service import LongTermMemory
from mindbus.bus.handlers import Told, on_command
from mindbus.bus.handling import Handling
from workers.lsm.answering import answering


class EpisodeDesk:
    """The part of long-term memory that knows episodes; whoever names no time means now."""

    memory: LongTermMemory

    @on_command
    async def get_episode(self, query: GetEpisode, handling: Handling) -> Episode:
        with answering(handling, query.episode_id):
            return await self.memory.reading.episode(query.episode_id, query.at or self.memory.clock())

    @on_command
    async def explain_episode(self, query: ExplainEpisode, handling: Handling) -> ExplainedEpisode:
        with answering(handling, query.episode_id):
            return await self.memory.reading.explained(query.episode_id, query.at or self.memory.clock())

    @on_command
    async def list_episodes(self, query: ListEpisodes, handling: Handling) -> EpisodePage:
        with answering(handling):
            return await self.memory.reading.page(query, query.at or self.memory.clock())

    @on_command
    async def get_hot(self, query: GetHotEpisodes, handling: Handling) -> FoundEpisodes:
        with answering(handling):
            return await self.memory.reading.hot(query)

    @on_command
    async def get_due(self, query: GetDueEpisodes, handling: Handling) -> DueEpisodes:
        with answering(handling):
            return await self.memory.layers.due(query.at or self.memory.clock(), query.after, query.limit)

    @on_command
    async def apply_pack(self, command: ApplyPack, handling: Handling) -> tuple[EpisodeHead | Told, ...]:
        with answering(handling, command.episode_id):
            head, packed = await self.memory.packs.apply(command, command.at or self.memory.clock())
        return (head,) if packed is None else (head, Told(packed, conversation_trace(head.chat_id)))

    @on_command
    async def unpack(self, command: UnpackEpisode, handling: Handling) -> tuple[HotContent | Told, ...]:
        with answering(handling, command.episode_id):
            content, woken = await self.memory.waking.unpack(command.episode_id, command.at or self.memory.clock())
        return (content,) if woken is None else (content, Told(woken, conversation_trace(woken.chat_id)))

    @on_command
    async def set_anchor(self, command: SetAnchor, handling: Handling) -> tuple[EpisodeHead | Told, ...]:
        with answering(handling, command.episode_id):
            head, events = await self.memory.waking.set_anchor(command, self.memory.clock())
        return head, *(Told(event, conversation_trace(head.chat_id)) for event in events)

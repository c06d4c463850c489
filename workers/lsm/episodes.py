"""Episodes: read, list, explain, pack, unpack and anchor them."""

from bus_schema.dialogue import conversation_trace
from bus_schema.episodes import Episode, EpisodeHead, HotContent
from bus_schema.lsm import EpisodePage, GetEpisode, ListEpisodes, SetAnchor, UnpackEpisode
from bus_schema.lsm_packing import ApplyPack, DueEpisodes, GetDueEpisodes
from bus_schema.lsm_search import FoundEpisodes, GetHotEpisodes
from bus_schema.lsm_statistics import ExplainedEpisode, ExplainEpisode
from memory.lsm.service import LongTermMemory
from mindbus.bus.handlers import Publish, on_command


class Episodes:
    """Handlers of episodes; a message without a time means now."""

    def __init__(self, memory: LongTermMemory) -> None:
        self._memory = memory

    @on_command
    async def get_episode(self, query: GetEpisode) -> Episode:
        return await self._memory.queries.episode(query.episode_id, query.at or self._memory.clock())

    @on_command
    async def explain_episode(self, query: ExplainEpisode) -> ExplainedEpisode:
        return await self._memory.queries.explained(query.episode_id, query.at or self._memory.clock())

    @on_command
    async def list_episodes(self, query: ListEpisodes) -> EpisodePage:
        return await self._memory.queries.page(query, query.at or self._memory.clock())

    @on_command
    async def get_hot(self, query: GetHotEpisodes) -> FoundEpisodes:
        return await self._memory.queries.hot(query)

    @on_command
    async def get_due(self, query: GetDueEpisodes) -> DueEpisodes:
        return await self._memory.schedule.due(query.at or self._memory.clock(), query.after, query.limit)

    @on_command
    async def apply_pack(self, command: ApplyPack) -> tuple[EpisodeHead | Publish, ...]:
        head, packed = await self._memory.packs.apply(command, command.at or self._memory.clock())
        return (head,) if packed is None else (head, Publish(packed, conversation_trace(head.chat_id)))

    @on_command
    async def unpack(self, command: UnpackEpisode) -> tuple[HotContent | Publish, ...]:
        content, reactivated = await self._memory.reactivation.unpack(
            command.episode_id, command.at or self._memory.clock()
        )
        return (
            (content,)
            if reactivated is None
            else (content, Publish(reactivated, conversation_trace(reactivated.chat_id)))
        )

    @on_command
    async def set_anchor(self, command: SetAnchor) -> tuple[EpisodeHead | Publish, ...]:
        head, events = await self._memory.reactivation.set_anchor(command, self._memory.clock())
        return head, *(Publish(event, conversation_trace(head.chat_id)) for event in events)

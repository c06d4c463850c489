"""Episodes: reads, lists, explains, packs, unpacks, anchors, searches, counts and erases them."""

import asyncio
from collections.abc import AsyncIterator

from bus_schema.conversations import AnswerRated
from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from bus_schema.episodes import Episode, EpisodeHead, HotContent
from bus_schema.identities import user_of, worker_of
from bus_schema.ids import derived
from bus_schema.lsm import EpisodePage, GetEpisode, ListEpisodes, SetAnchor, UnpackEpisode
from bus_schema.lsm_search import Feedback, FoundEpisodes, GetHotEpisodes, SearchEpisodes, TuneReport, TuneSearch
from bus_schema.lsm_statistics import (
    EpisodeStats,
    ExplainedEpisode,
    ExplainEpisode,
    GetEpisodeStats,
    GetLayerHistory,
    LayerHistory,
)
from bus_schema.messages import Nothing
from bus_schema.packer import ApplyPack, DueEpisodes, GetDueEpisodes
from memory.errors import NoSuchEpisode
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, background, every, on_command, on_event, time_limit
from mindbus.bus.telemetry import RATED, RECALLED, series
from mindbus.errors import TemporaryFailure
from mindbus.logs import logger
from mindbus.sql.inbox import SqlInbox
from retrieval.embedding.embedder import EmbedderFailure
from workers.lsm.message_log import in_conversation

_EMBED_AGAIN_S = 10.0
_WORKERS = ("packer", "dialogue")


class EpisodeHandlers:
    """Handlers of episodes; a message without a time means now."""

    def __init__(self, memory: LongTermMemory) -> None:
        self._memory = memory

    @on_command
    async def get_episode(self, query: GetEpisode, context: MessageContext) -> Episode:
        await self._require_own(query.episode_id, context)
        return await self._memory.queries.episode(query.episode_id, query.at or self._memory.clock())

    @on_command
    async def explain_episode(self, query: ExplainEpisode, context: MessageContext) -> ExplainedEpisode:
        await self._require_own(query.episode_id, context)
        return await self._memory.queries.explain(query.episode_id, query.at or self._memory.clock())

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
        return head, *in_conversation([packed])

    @on_command
    async def unpack(self, command: UnpackEpisode, context: MessageContext) -> tuple[HotContent | Publish, ...]:
        await self._require_own(command.episode_id, context)
        at = command.at or self._memory.clock()
        content, reactivated = await self._memory.reactivation.unpack(command.episode_id, at)
        return content, *in_conversation([reactivated])

    @on_command
    async def set_anchor(self, command: SetAnchor, context: MessageContext) -> tuple[EpisodeHead | Publish, ...]:
        await self._require_own(command.episode_id, context)
        head, events = await self._memory.reactivation.set_anchor(command, self._memory.clock())
        return head, *in_conversation(events)

    async def _require_own(self, episode_id: str, context: MessageContext) -> None:
        """Raises NoSuchEpisode for an episode of somebody else's chat, as for one that is absent."""
        if context.is_operator or worker_of(context.requester) in _WORKERS:
            return
        if await self._memory.queries.chat_of(episode_id) != user_of(context.requester):
            raise NoSuchEpisode(episode_id=episode_id, is_denied=True)


class EpisodeSearchHandlers:
    """Handlers and background tasks of the search."""

    def __init__(self, memory: LongTermMemory, search: EpisodeSearch) -> None:
        self._memory, self._search = memory, search

    @on_command
    async def find(self, query: SearchEpisodes, context: MessageContext) -> FoundEpisodes:
        """The answer, which waits for no write."""
        at = query.at or self._memory.clock()
        search_id = f"srch_{derived(context.message_id, 'search')}"
        found = await self._search.find(query, at, search_id, context.requester)
        series(RECALLED, "episodes", found.confidence).inc()
        if query.hot_words is None:
            return found
        current = GetHotEpisodes(chat_id=query.chat_id, budget_words=query.hot_words, exclude=query.exclude)
        return found.model_copy(update={"hot": (await self._memory.queries.hot(current)).episodes})

    @on_command
    async def feedback(self, command: Feedback, context: MessageContext) -> tuple[Nothing | Publish, ...]:
        await self._search.log.write(command.search_id)
        touched = await self._search.log.take_feedback(command, context.requester)
        series(RATED, "useful" if command.used else "useless").inc()
        return Nothing(), *in_conversation(touched)

    @on_event
    async def take_rating(self, event: AnswerRated) -> None:
        """Keep what the user thinks of the answer to a search, for the tuning."""
        if event.search_id is None:
            return
        await self._search.log.write(event.search_id)
        if await self._search.log.take_rating(event) and event.rating is not None:
            series(RATED, "useful" if event.rating == "helpful" else "useless").inc()

    @on_command
    @time_limit(seconds=3600)
    async def tune(self, command: TuneSearch, context: MessageContext) -> TuneReport:
        return await self._search.tuning.tune(apply=command.apply)

    @background()
    async def log_searches(self) -> AsyncIterator[tuple[Publish, ...]]:
        """Count what was found as accessed, unless the query only looked; its events leave with the same commit."""
        async with self._search.log.step() as events:
            yield in_conversation(events)

    @background(pause_s=0.05)
    async def embed(self) -> None:
        """Embed what was recorded, when nobody talks; while the embedder is unavailable, search is by words alone."""
        await self._search.backlog.until_due()
        try:
            await self._search.embed()
        except EmbedderFailure as error:
            logger().warning("turns wait for their vectors", reason=str(error))
            await asyncio.sleep(_EMBED_AGAIN_S)

    @every(seconds=60)
    async def save_indexes(self) -> None:
        """Save what large indexes have grown by; a disk without room for that only makes the next start slower."""
        try:
            await self._search.indexes.save()
        except OSError as error:
            logger().warning("index is not saved", reason=str(error))

    @every(seconds=3600)
    async def sweep_snapshots(self) -> None:
        await self._search.indexes.snapshots.sweep()


# Unpacked content does not name its user, so all such replies are emptied: nobody waits for one so long.
_UNPACKED = UnpackEpisode.wire.type.replace("mb.cmd.", "mb.rpl.", 1)


class EpisodeMaintenance:
    """Handlers of operators: counts, layer history, erasure."""

    def __init__(self, memory: LongTermMemory, search: EpisodeSearch, inbox: SqlInbox) -> None:
        self._memory, self._search, self._inbox = memory, search, inbox

    @on_command
    async def stats(self, query: GetEpisodeStats) -> EpisodeStats:
        chat_id, indexes = query.chat_id, self._search.indexes
        counted = await self._memory.statistics.count(chat_id)
        if not query.with_sizes:
            return counted
        snapshots = await asyncio.to_thread(indexes.snapshots.size_bytes, chat_id)
        sizes = await self._memory.statistics.sizes(chat_id, indexes.size_bytes(chat_id), snapshots)
        return counted.model_copy(update={"sizes": sizes})

    @on_command
    async def layer_history(self, query: GetLayerHistory) -> LayerHistory:
        return await self._memory.statistics.layer_history(query, self._memory.clock())

    @background(pause_s=0.2)
    async def archive(self) -> None:
        """Move raw turns of episodes that have been cold for long into artifacts, some at a time."""
        try:
            archived = await self._memory.archives.step(self._memory.clock())
        except TemporaryFailure as error:
            logger().warning("raw turns stay in the log for now", reason=str(error))
            archived = 0
        if not archived:
            await asyncio.sleep(self._memory.archives.pause_s)

    @every(seconds=60)
    async def forget_searches(self) -> None:
        await self._memory.erasure.forget_searches(self._memory.clock())

    @on_command
    @time_limit(seconds=3600)
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        counts = await self._memory.erasure.erase(None)
        await self._memory.archives.require_idle(None)
        await self._inbox.forget()
        return Removed.of(counts)

    @on_command
    @time_limit(seconds=3600)
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        """Erase everything said with the user, outcomes in the inbox included."""
        user_id = command.user_id
        counts = await self._memory.erasure.erase(user_id)
        await self._memory.archives.require_idle(user_id)
        await self._inbox.forget(user_id, conversation_trace(user_id), _UNPACKED)
        return Removed.of(counts)

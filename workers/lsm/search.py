"""Search over episodes: answers queries, logs them as accesses, takes feedback, embeds what is recorded."""

import asyncio
from collections.abc import AsyncIterator

from bus_schema.ids import derived
from bus_schema.lsm_search import Feedback, FoundEpisodes, SearchEpisodes, TuneReport, TuneSearch
from memory.embedding.errors import EmbedderFailure
from memory.lsm.search.service import EpisodeSearch
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, background, on_command
from mindbus.logs import logger
from workers.lsm.events import in_conversation

_EMBED_AGAIN_S = 10.0


class Search:
    """Handlers and background tasks of the search."""

    def __init__(self, memory: LongTermMemory, search: EpisodeSearch) -> None:
        self._memory, self._search = memory, search

    @on_command
    async def find(self, query: SearchEpisodes, context: MessageContext) -> FoundEpisodes:
        """The answer, which waits for no write."""
        at = query.at or self._memory.clock()
        search_id = f"srch_{derived(context.message_id, 'search')}"
        return (await self._search.find(query, at, search_id, context.requester)).answer

    @on_command
    async def feedback(self, command: Feedback, context: MessageContext) -> None:
        await self._search.log.write(command.search_id)
        await self._search.log.take_feedback(command, context.requester)

    @on_command
    async def tune(self, command: TuneSearch, context: MessageContext) -> TuneReport:
        context.require_operator()
        return await self._search.tuning.tune(apply=command.apply)

    @background()
    async def log_searches(self) -> AsyncIterator[tuple[Publish, ...]]:
        """Count what was found as accessed, unless the query only looked; its events leave with the same commit."""
        async with self._search.log.step() as events:
            yield in_conversation(events)

    @background(pause_s=0.05)
    async def embed(self) -> None:
        """Embed what was recorded; while the embedder is unavailable, search is by words alone."""
        try:
            await self._search.embed()
        except EmbedderFailure as error:
            logger().warning("turns wait for their vectors", reason=str(error))
            await asyncio.sleep(_EMBED_AGAIN_S)

"""Answers those who look for something, learns what of it was of use."""

import asyncio

from bus_schema.ids import derived
from bus_schema.lsm_search import Feedback, FoundEpisodes, SearchEpisodes, TuneReport, TuneSearch
from memory.embedding.errors import EmbedderFailure
from memory.lsm.search.service import EpisodeSearch
from memory.lsm.service import LongTermMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, every, on_command
from mindbus.logs import logger
from mindbus.sql.database import DatabaseAway
from workers.lsm.answering import answering
from workers.lsm.telling import told_of

_AGAIN_S = 1.0
_EMBED_AGAIN_S = 10.0


class SearchDesk:
    """The part of long-term memory that finds."""

    memory: LongTermMemory
    search: EpisodeSearch

    @on_command
    async def find(self, query: SearchEpisodes, context: MessageContext) -> FoundEpisodes:
        """Whoever asks waits for no write."""
        at = query.at or self.memory.clock()
        search_id = f"srch_{derived(context.message_id, 'search')}"
        with answering(context):
            return (await self.search.find(query, at, search_id, context.requester)).answer

    @every(seconds=0.01)
    async def keep(self) -> tuple[Publish, ...]:
        """What was found counts as used, unless the asker only looked."""
        try:
            return told_of(await self.search.log.step())
        except DatabaseAway as away:
            logger().warning("searches wait to be kept", reason=str(away))
            await asyncio.sleep(_AGAIN_S)
            return ()

    @on_command
    async def feedback(self, command: Feedback, context: MessageContext) -> None:
        with answering(context):
            await self.search.log.write(command.search_id)
            await self.search.log.take_feedback(command, context.requester)

    @on_command
    async def tune(self, command: TuneSearch, context: MessageContext) -> TuneReport:
        context.require_operator()
        with answering(context):
            return await self.search.tuning.tune(apply=command.apply)

    @every(seconds=0.05)
    async def fill(self) -> None:
        """Embed what was said; while the embedder is away, it is found by its words."""
        try:
            await self.search.embed()
        except EmbedderFailure as failure:
            logger().warning("turns wait for their vectors", reason=str(failure))
            await asyncio.sleep(_EMBED_AGAIN_S)
        except DatabaseAway as away:
            logger().warning("turns wait for their vectors", reason=str(away))
            await asyncio.sleep(_AGAIN_S)

"""Episode search: index cache, embeddings, finder, search log and tuning, connected to the log."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from bus_schema.lsm_search import FoundEpisodes, SearchEpisodes
from config.settings import FleetSettings
from memory.embedding.embedder import Embedder
from memory.lsm.search.chat_index import ChatIndexCache
from memory.lsm.search.embeddings import QueryEmbeddings, TurnBacklog
from memory.lsm.search.search import EpisodeFinder
from memory.lsm.search.search_log import SearchLog
from memory.lsm.search.tuning import WeightTuning
from memory.lsm.service import LongTermMemory

_MIB = 1 << 20


class EpisodeSearch:
    """Search by words and vectors; without an embedder, or until it is open, by words alone.

    It is registered for changes of the memory's log; nothing is opened yet.
    """

    def __init__(
        self, memory: LongTermMemory, settings: FleetSettings, opening: Callable[[], Awaitable[Embedder]]
    ) -> None:
        database, self.opening = memory.database, opening
        self.indexes = ChatIndexCache(database, memory.recorder.limits.gap, settings.lsm_index_mib * _MIB)
        self.embeddings = QueryEmbeddings()
        self.backlog = TurnBacklog(database, self.embeddings, self.indexes)
        self.finder = EpisodeFinder(database, memory.rules, self.indexes, self.embeddings)
        self.log = SearchLog(database, memory.reactivation)
        self.tuning = WeightTuning(database, self.indexes, self.embeddings)
        for listener in (self.indexes, self.backlog, self.log):
            memory.listeners.add(listener)

    async def find(self, query: SearchEpisodes, at: datetime, search_id: str, requester: str) -> FoundEpisodes:
        """Search with the weights in use and queue the search for the log. Raises DatabaseAway."""
        search = await self.finder.find(query, at, search_id, requester, await self.tuning.weights())
        self.log.put(search)
        return search.answer

    async def embed(self) -> None:
        """Wait for turns without a vector, embed a batch of them. Raises EmbedderFailure, DatabaseAway."""
        if self.embeddings.embedder is None:
            self.embeddings.embedder = await self.opening()
            await self.backlog.delete_other_models()
        await self.backlog.step()

    async def close(self) -> None:
        """Write the queued searches, close the embedder."""
        embedder, self.embeddings.embedder = self.embeddings.embedder, None
        if embedder is not None:
            await embedder.close()
        await self.log.close()

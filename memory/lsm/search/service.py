"""The search of long-term memory, put together."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from bus_schema.lsm_search import SearchEpisodes
from memory.embedding.embedder import Embedder
from memory.lsm.search.filling import Filling
from memory.lsm.search.finding import Finding, Found
from memory.lsm.search.keeping import Keeping, SearchMade
from memory.lsm.search.question_vectors import QuestionVectors
from memory.lsm.search.searches import Searches
from memory.lsm.search.shelf import Shelf
from memory.lsm.service import LongTermMemory
from mindbus.settings import Settings

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class EpisodeSearch:
    """Without an embedder, or until it is there, words alone are compared."""

    shelf: Shelf
    questions: QuestionVectors
    filling: Filling
    finding: Finding
    searches: Searches
    keeping: Keeping
    opening: Callable[[], Awaitable[Embedder]]

    async def find(self, query: SearchEpisodes, at: datetime, search_id: str, requester: str) -> Found:
        """Answer with the weights in use; what the search leaves behind is written later. Raises DatabaseAway."""
        found = await self.finding.find(query, at, search_id, await self.searches.weights())
        self.keeping.put(SearchMade(search_id, query, requester, at, found))
        return found

    async def fill(self) -> None:
        """Wait for turns without a vector, then embed some of them. Raises EmbedderFailure, DatabaseAway."""
        if self.questions.embedder is None:
            self.questions.embedder = await self.opening()
            await self.filling.forget_others()
        await self.filling.step()

    async def close(self) -> None:
        """Write what waits, let go of the embedder."""
        embedder, self.questions.embedder = self.questions.embedder, None
        if embedder is not None:
            await embedder.close()
        await self.keeping.close()


def search_over(
    memory: LongTermMemory, settings: Settings, opening: Callable[[], Awaitable[Embedder]]
) -> EpisodeSearch:
    """Nothing is opened yet; what is recorded or forgotten from now on, it hears of."""
    database, gap = memory.database, memory.recording.bounds.gap
    shelf = Shelf(database, gap, settings.lsm_index_mib * _MIB)
    questions = QuestionVectors()
    filling = Filling(database, questions, shelf)
    finding = Finding(database, memory.rules, shelf, questions)
    searches = Searches(database, shelf, questions)
    keeping = Keeping(searches, memory.waking)
    for follower in (shelf, filling, keeping):
        memory.followers.add(follower)
    return EpisodeSearch(shelf, questions, filling, finding, searches, keeping, opening)

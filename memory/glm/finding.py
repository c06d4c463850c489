"""Answers to questions, ranked or in order."""

from bus_schema.glm import FoundKem, KemPage, RetrieveKems
from memory.asker import Asker
from memory.glm.cursors import MAX_RANK, cursor_at, rank_of
from memory.glm.following import Following
from memory.glm.nearness import Nearness
from memory.glm.retrieval import Retrieval
from memory.refusals import NoTextSearch

# Somebody who has just stored a unit looks for it; who writes for ever does not hold up others.
_FRESH_WITHIN_S = 1.0


class Finding:
    """One question, one page; nearness is asked of the index once it has heard of all that was stored before."""

    def __init__(self, retrieval: Retrieval, nearness: Nearness, following: Following) -> None:
        self.retrieval, self.nearness, self.following = retrieval, nearness, following

    async def find(self, wanted: RetrieveKems, asker: Asker) -> KemPage:
        """Raises NotACursor, WrongVector, NoTextSearch, IndexAway, DatabaseAway."""
        query = wanted.query
        if not query.is_ranked:
            return await self.retrieval.page(query, asker, wanted.cursor, wanted.page_size)
        first = rank_of(wanted.cursor, query)
        behind = first + wanted.page_size
        ranked = await self._ranked(wanted, asker, behind + 1)
        page = ranked[first:behind] if wanted.explain else [_unexplained(item) for item in ranked[first:behind]]
        next_cursor = cursor_at(behind, query) if len(ranked) > behind and behind <= MAX_RANK else None
        return KemPage(items=tuple(page), next_cursor=next_cursor)

    async def _ranked(self, wanted: RetrieveKems, asker: Asker, limit: int) -> list[FoundKem]:
        query = wanted.query
        if query.text_query is not None or query.embedding_query is None:
            raise NoTextSearch
        await self.following.catch_up(_FRESH_WITHIN_S)
        return await self.nearness.nearest(query.embedding_query, query, asker, limit)


def _unexplained(item: FoundKem) -> FoundKem:
    return item.model_copy(update={"explain": None})

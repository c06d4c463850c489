"""Answers to questions, ranked or in order."""

from bus_schema.glm import FoundKem, KemPage, RetrieveKems
from memory.glm.cursors import MAX_RANK, cursor_at, rank_of
from memory.glm.following import Following
from memory.glm.ranking import Ranking
from memory.glm.retrieval import Retrieval
from mindbus.principal import Principal

# Somebody who has just stored a unit looks for it; who writes for ever does not hold up others.
_FRESH_WITHIN_S = 1.0


class Finding:
    """One question, one page; nearness is asked of the index once it has heard of all that was stored before."""

    def __init__(self, retrieval: Retrieval, ranking: Ranking, following: Following) -> None:
        self.retrieval, self.ranking, self.following = retrieval, ranking, following

    async def find(self, wanted: RetrieveKems, principal: Principal) -> KemPage:
        """Raises InvalidCursor, WrongVector, DatabaseAway; IndexAway where there are no words to look for instead."""
        query = wanted.query
        if not query.is_ranked:
            return await self.retrieval.page(query, principal, wanted.cursor, wanted.page_size)
        first = rank_of(wanted.cursor, query)
        behind = first + wanted.page_size
        await self.following.catch_up(_FRESH_WITHIN_S)
        found = await self.ranking.ranked(query, principal, behind + 1)
        ranked = found.items
        page = ranked[first:behind] if wanted.explain else [_unexplained(item) for item in ranked[first:behind]]
        next_cursor = cursor_at(behind, query) if len(ranked) > behind and behind <= MAX_RANK else None
        return KemPage(items=tuple(page), next_cursor=next_cursor, is_degraded=found.is_degraded)


def _unexplained(item: FoundKem) -> FoundKem:
    return item.model_copy(update={"explain": None})

"""Search over units: by meaning, by words, by both; ranked or in order, a page at a time."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from cachetools import LRUCache
from sqlalchemy import and_, select

from bus_schema.embeddings import Embedding
from bus_schema.glm import Explanation, FoundKem, KemPage, RetrieveKems
from bus_schema.identities import Principal
from bus_schema.kem_match import meets_filter
from bus_schema.kem_query import KemQuery
from memory.glm.index_sync import VectorRelay
from memory.glm.lexical import LexicalSearch
from memory.glm.queries import MAX_RANK, KemQueries, cursor_at, matching_apart_from_metadata, rank_of, readable_by
from memory.glm.tables import KemRow
from memory.glm.twins import folded
from memory.vectors.index import IndexAway, IndexRefused
from mindbus.logs import logger
from retrieval.bm25 import LexicalScore
from retrieval.embedding.e5 import MODEL
from retrieval.embedding.embedder import Embedder, EmbedderFailure
from retrieval.similarity import best_first, centred_cosines, fuse

# The index is asked for more where rows rule out too many of its candidates.
_GROWTH = 4
_MAX_CANDIDATES = 10_000
# Nearest units that compete with those found by words.
_NEAREST = 200
# More than words and vectors together find: each page of a query with an order of its own sorts the same results.
_MOST_SORTED = 1000
# Results beyond those wanted that others may stand for.
_TWINS = 20
_CACHED_QUERIES = 500
_EMBEDDED_WITHIN_S = 5.0
# An author finds what was just stored; a steady stream of writes does not hold up everybody's searches.
_FRESH_WITHIN_S = 1.0
_NO_WORDS = LexicalScore(0.0, ())
# Nearest to a question that has no word in common with any unit, if it is about nothing in them. Measured on six chats
# in two languages that others wrote: below it are 49 of 60 such questions, none of 72 that are answered there, nor any
# of the 100 of tests/data. Among few units cosines say too little.
_NOTHING_BELOW = {MODEL: 0.26}
_FEW = 50
# What does not hold now may still be asked for, yet comes after what says the opposite today.
_OUTDATED = 0.5


@dataclass(frozen=True, slots=True)
class RankedKems:
    """Results, the best first; `is_degraded` if they were compared by words alone though the query has a text."""

    items: Sequence[FoundKem]
    is_degraded: bool = False


@dataclass(slots=True)
class Weighed:
    """Scores by key, which of the units do not hold, and which older one has raised another."""

    scores: dict[str, float]
    outdated: set[str] = field(default_factory=set)
    raised_by: dict[str, str] = field(default_factory=dict)

    def raise_over(self, outdated: Mapping[str, str | None]) -> set[str]:
        """Give what supersedes these at least their scores; returns what was raised."""
        self.outdated |= outdated.keys()
        raised = set()
        for older, newer in outdated.items():
            score = self.scores[older]
            if newer is not None and self.scores.get(newer, -1.0) < score:
                self.scores[newer], self.raised_by[newer] = score, older
                raised.add(newer)
        return raised


class KemSearch:
    """Vectors are compared with vectors, texts by words too; without embedder or index, words alone still answer.

    Of what a text finds, that which does not hold now, or at the time asked about, comes later.
    """

    def __init__(
        self,
        queries: KemQueries,
        relay: VectorRelay,
        embedder: Embedder | None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.queries, self.relay, self.embedder = queries, relay, embedder
        self.clock = clock or partial(datetime.now, UTC)
        self.index, self.lexical = relay.index, LexicalSearch(queries.database)
        self._embeddings: LRUCache[str, Embedding] = LRUCache(_CACHED_QUERIES)

    async def page(self, request: RetrieveKems, principal: Principal) -> KemPage:
        """One page; a ranked one waits briefly until the index has all that was stored before it.

        Raises InvalidCursor, WrongVector, DatabaseAway, and IndexAway or IndexRefused if the query has no text.
        """
        query = request.query
        if not query.is_ranked:
            return await self.queries.page(query, principal, request.cursor, request.page_size)
        start = rank_of(request.cursor, query)
        end = start + request.page_size
        await self.relay.catch_up(_FRESH_WITHIN_S)
        ranked = await self.rank(query, principal, end + 1)
        items = ranked.items[start:end]
        if not request.explain:
            items = [item.model_copy(update={"explain": None}) for item in items]
        next_cursor = cursor_at(end, query) if len(ranked.items) > end and end <= MAX_RANK else None
        return KemPage(items=tuple(items), next_cursor=next_cursor, is_degraded=ranked.is_degraded)

    async def rank(self, query: KemQuery, principal: Principal, limit: int) -> RankedKems:
        """Up to `limit` results.

        Raises WrongVector, DatabaseAway, and IndexAway or IndexRefused if the query has no text.
        """
        self.index.space.require(query.embedding_query)
        # A query with an order of its own sorts the results that would have come first.
        sorted_of = _MOST_SORTED if query.text_query is not None else _NEAREST + 1
        count = limit if query.order_by is None else sorted_of
        if query.text_query is not None:
            results = await self._by_text(query.text_query, query, principal, count)
        elif query.embedding_query is not None:
            results = RankedKems(await self.nearest(query.embedding_query, query, principal, count))
        else:
            results = RankedKems([])
        if query.order_by is None:
            return results
        name, direction = query.order_by.split()
        items = sorted(
            results.items, key=lambda item: (getattr(item.kem, name), item.kem.id), reverse=direction == "desc"
        )
        return RankedKems(items[:limit], results.is_degraded)

    async def nearest(self, vector: Embedding, query: KemQuery, principal: Principal, limit: int) -> list[FoundKem]:
        """Up to `limit` units, the nearest first: the index proposes, rows decide, since the index may lag behind.

        Raises WrongVector, IndexAway, IndexRefused.
        """
        self.index.space.require(vector)
        count = limit
        while True:
            candidates = await self.index.nearest(vector.raw, query, principal, count)
            kems = await self.queries.among([candidate.kem_id for candidate in candidates], query, principal)
            if len(kems) >= limit or len(candidates) < count or count >= _MAX_CANDIDATES:
                break
            count = min(count * _GROWTH, _MAX_CANDIDATES)
        results = [
            FoundKem(kem=kems[candidate.kem_id], score=candidate.score, explain=Explanation(dense=candidate.score))
            for candidate in candidates
            if candidate.kem_id in kems
        ]
        return results[:limit]

    async def _by_text(self, text: str, query: KemQuery, principal: Principal, limit: int) -> RankedKems:
        if await self.queries.is_empty():
            # Nothing to compare a vector with.
            return RankedKems([])
        lexical_scores = await self.lexical.scores(text, query, principal)
        cosines = await self._cosines(text, query, principal, lexical_scores)
        scores = {key: score.score for key, score in lexical_scores.items()}
        if cosines is not None:
            if not scores and self._are_far(cosines):
                return RankedKems([])
            scores = fuse(scores, cosines)
        weighed = await self._weigh(scores, query, principal)

        def explanation(key: str) -> Explanation:
            words = lexical_scores.get(key, _NO_WORDS)
            parts = {"dense": (cosines or {}).get(key), "lexical": words.score, "words": words.words}
            weight = _OUTDATED if key in weighed.outdated else 1.0
            return Explanation(**parts, validity=weight, raised_by=weighed.raised_by.get(key))

        ranked, batch = best_first(weighed.scores), 2 * limit + _TWINS
        items: list[FoundKem] = []
        results: list[FoundKem] = []
        for start in range(0, len(ranked), batch):
            # Some of them say the same.
            more = ranked[start : start + batch]
            kems = await self.queries.among(more, query, principal)
            found = [key for key in more if key in kems]
            items += [FoundKem(kem=kems[key], score=weighed.scores[key], explain=explanation(key)) for key in found]
            results = folded(items)
            if len(results) >= limit:
                break
        return RankedKems(results[:limit], is_degraded=cosines is None)

    async def _weigh(self, scores: Mapping[str, float], query: KemQuery, principal: Principal) -> Weighed:
        """Lower what does not hold; raise what supersedes it, by whatever number of steps, to where it was."""
        time = query.as_of or self.clock()
        weighed, looked_at = Weighed(dict(scores)), set(scores)
        while looked_at and (outdated := await self.queries.outdated(looked_at, time)):
            looked_at = weighed.raise_over(outdated)
        if added := weighed.scores.keys() - scores.keys():
            found = await self.queries.among(list(added), query, principal)
            for hidden in added - found.keys():
                del weighed.scores[hidden]
        for key in weighed.outdated & weighed.scores.keys():
            weighed.scores[key] *= _OUTDATED
        return weighed

    def _are_far(self, cosines: Mapping[str, float]) -> bool:
        return len(cosines) >= _FEW and max(cosines.values()) < _NOTHING_BELOW.get(self.index.space.model, -1.0)

    async def _cosines(
        self, text: str, query: KemQuery, principal: Principal, lexical_scores: Mapping[str, LexicalScore]
    ) -> dict[str, float] | None:
        """Cosines of the nearest units and of those found by words; None without embedder or index."""
        try:
            vector = query.embedding_query or await self._embedding(text)
            if vector is None:
                return None
            nearest = await self.index.nearest(vector.raw, query, principal, _NEAREST)
            candidates = {candidate.kem_id for candidate in nearest} | lexical_scores.keys()
            return centred_cosines(vector.raw, await self._vectors(candidates, query, principal))
        except (EmbedderFailure, IndexAway, IndexRefused, TimeoutError) as error:
            logger().warning("searched by words alone", reason=str(error) or "the embedder took too long")
            return None

    async def _embedding(self, text: str) -> Embedding | None:
        if self.embedder is None:
            return None
        if (cached := self._embeddings.get(text)) is not None:
            return cached
        async with asyncio.timeout(_EMBEDDED_WITHIN_S):
            vector = await self.embedder.query(text)
        self._embeddings[text] = vector
        return vector

    async def _vectors(self, kem_ids: Collection[str], query: KemQuery, principal: Principal) -> dict[str, bytes]:
        space = self.index.space
        condition = and_(
            KemRow.id.in_(kem_ids),
            KemRow.model == space.model,
            matching_apart_from_metadata(query),
            readable_by(principal),
        )
        async with self.queries.database.reading() as session:
            rows = (await session.execute(select(KemRow.id, KemRow.vector, KemRow.facts).where(condition))).all()
        return {
            row.id: row.vector
            for row in rows
            if len(row.vector) == space.bytes_of_vector and meets_filter(row.facts, query.metadata_filters)
        }

"""What lies near, as far as rows bear it out."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cachetools import LRUCache
from sqlalchemy import and_, select

from bus_schema.embeddings import Embedding
from bus_schema.glm import Explanation, FoundKem, KemPage, RetrieveKems
from bus_schema.kem_matching import meets_filter
from bus_schema.kem_query import KemQuery, OrderBy
from memory.embedding.embedder import Embedder
from memory.embedding.errors import EmbedderFailure
from memory.glm.acl import readable_by
from memory.glm.conditions import meeting_but_for_metadata
from memory.glm.cursors import MAX_RANK, cursor_at, rank_of
from memory.glm.index_sync import IndexSync
from memory.glm.lexical import LexicalSearch
from memory.glm.queries import KemQueries
from memory.glm.tables import KemRow
from memory.vectors.index import IndexAway, VectorIndex
from mindbus.logs import logger
from mindbus.principal import Principal
from retrieval.bm25 import LexicalScore
from retrieval.fusion import best_first, fuse
from retrieval.similarity import centred_cosines

_MORE = 4
_MOST = 10_000


class SemanticSearch:
    """The index proposes, rows decide: it may be behind, may know times to the second alone."""

    def __init__(self, index: VectorIndex, retrieval: KemQueries) -> None:
        self.index, self.retrieval = index, retrieval

    async def nearest(self, vector: Embedding, query: KemQuery, principal: Principal, limit: int) -> list[FoundKem]:
        """The nearest first, as many as there are up to the limit. Raises WrongVector, IndexAway."""
        self.index.space.require(vector)
        wanted = limit
        while True:
            hits = await self.index.nearest(vector.raw, query, principal, wanted)
            kems = await self.retrieval.among([hit.kem_id for hit in hits], query, principal)
            if len(kems) >= limit or len(hits) < wanted or wanted >= _MOST:
                break
            wanted = min(wanted * _MORE, _MOST)
        found = [
            FoundKem(kem=kems[hit.kem_id], score=hit.score, explain=Explanation(dense=hit.score))
            for hit in hits
            if hit.kem_id in kems
        ]
        return found[:limit]


# So many of the nearest compete with what the words find.
_NEAREST = 200
_QUESTIONS = 500
_EMBEDDED_WITHIN_S = 5.0
_NO_WORDS = LexicalScore(0.0, ())


@dataclass(frozen=True, slots=True)
class RankedKems:
    """The best first; `is_degraded` where only words were compared though meaning was asked for, too."""

    items: Sequence[FoundKem]
    is_degraded: bool = False


class HybridSearch:
    """A vector is compared with vectors, a text with words too; whatever is away, the rest still answers."""

    def __init__(self, nearness: SemanticSearch, words: LexicalSearch, embedder: Embedder | None) -> None:
        self.nearness, self.words, self.embedder = nearness, words, embedder
        self._questions: LRUCache[str, Embedding] = LRUCache(_QUESTIONS)

    async def ranked(self, query: KemQuery, principal: Principal, limit: int) -> RankedKems:
        """As many as there are up to the limit. Raises WrongVector, DatabaseAway, IndexAway if there is no text."""
        if query.embedding_query is not None:
            self.nearness.index.space.require(query.embedding_query)
        # Another order is one of those that would have come first.
        wanted = limit if query.order_by is None else max(limit, _NEAREST)
        if query.text_query is not None:
            words = await self.words.found(query.text_query, query, principal)
            evidence = _Evidence(words, await self._meaning(query.text_query, query, principal, words))
            found = RankedKems(await self._found(evidence, query, principal, wanted), evidence.meaning is None)
        elif query.embedding_query is not None:
            found = RankedKems(await self.nearness.nearest(query.embedding_query, query, principal, wanted))
        else:
            found = RankedKems([])
        return (
            found if query.order_by is None else RankedKems(_in_order(found, query.order_by)[:limit], found.is_degraded)
        )

    async def _meaning(
        self, text: str, query: KemQuery, principal: Principal, words: Mapping[str, LexicalScore]
    ) -> dict[str, float] | None:
        """How near the nearest units are, those with the words besides; nothing where it cannot be told."""
        try:
            vector = query.embedding_query or await self._question(text)
            if vector is None:
                return None
            return await self._nearness(vector, query, principal, words)
        except (EmbedderFailure, IndexAway, TimeoutError) as trouble:
            logger().warning("searched by words alone", reason=str(trouble) or "the embedder took too long")
            return None

    async def _question(self, text: str) -> Embedding | None:
        if self.embedder is None:
            return None
        if (known := self._questions.get(text)) is not None:
            return known
        async with asyncio.timeout(_EMBEDDED_WITHIN_S):
            vector = await self.embedder.query(text)
        self._questions[text] = vector
        return vector

    async def _nearness(
        self, vector: Embedding, query: KemQuery, principal: Principal, words: Mapping[str, LexicalScore]
    ) -> dict[str, float]:
        hits = await self.nearness.index.nearest(vector.raw, query, principal, _NEAREST)
        candidates = {hit.kem_id for hit in hits} | words.keys()
        return centred_cosines(vector.raw, await self._vectors(candidates, query, principal))

    async def _vectors(self, kem_ids: Collection[str], query: KemQuery, principal: Principal) -> dict[str, bytes]:
        space = self.nearness.index.space
        meant = and_(KemRow.model == space.model, meeting_but_for_metadata(query), readable_by(principal))
        columns = select(KemRow.id, KemRow.vector, KemRow.facts)
        async with self.words.database.reading() as session:
            rows = (await session.execute(columns.where(KemRow.id.in_(kem_ids), meant))).all()
        return {
            row.id: row.vector
            for row in rows
            if len(row.vector) == space.bytes_of_vector and meets_filter(row.facts, query.metadata_filters)
        }

    async def _found(self, evidence: "_Evidence", query: KemQuery, principal: Principal, limit: int) -> list[FoundKem]:
        scores = evidence.scores
        best = best_first(scores)[:limit]
        kems = await self.nearness.retrieval.among(best, query, principal)
        return [
            FoundKem(kem=kems[key], score=scores[key], explain=evidence.explanation(key)) for key in best if key in kems
        ]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What speaks for each unit: its words; its meaning, where that could be told."""

    words: Mapping[str, LexicalScore]
    meaning: Mapping[str, float] | None

    @property
    def scores(self) -> dict[str, float]:
        words = {key: hit.score for key, hit in self.words.items()}
        return words if self.meaning is None else fuse(words, self.meaning)

    def explanation(self, key: str) -> Explanation:
        hit = self.words.get(key, _NO_WORDS)
        return Explanation(dense=(self.meaning or {}).get(key), lexical=hit.score, words=hit.words)


def _in_order(found: RankedKems, order_by: OrderBy) -> list[FoundKem]:
    name, direction = order_by.split()
    return sorted(found.items, key=lambda item: (getattr(item.kem, name), item.kem.id), reverse=direction == "desc")


# Somebody who has just stored a unit looks for it; who writes for ever does not hold up others.
_FRESH_WITHIN_S = 1.0


class PagedSearch:
    """One question, one page; nearness is asked of the index once it has heard of all that was stored before."""

    def __init__(self, retrieval: KemQueries, ranking: HybridSearch, following: IndexSync) -> None:
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

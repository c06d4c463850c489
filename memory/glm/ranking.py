"""What answers a question best, by meaning as well as by words.

ranking = Ranking(nearness, Words(database), embedder)
found = await ranking.ranked(query, asker, limit)     # found.items: FoundKem with score, explain; best first
found.is_degraded                                     # words alone: no embedder, or it or the index was away
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cachetools import LRUCache
from sqlalchemy import and_, select

from bus_schema.embeddings import Embedding
from bus_schema.glm import Explanation, FoundKem
from bus_schema.kem_matching import meets_filter
from bus_schema.kem_query import KemQuery, OrderBy
from memory.embedding.embedder import Embedder
from memory.embedding.failures import EmbedderFailure
from memory.glm.acl import readable_by
from memory.glm.conditions import meeting_but_for_metadata
from memory.glm.nearness import Nearness
from memory.glm.tables import KemRow
from memory.glm.words import Words
from memory.vectors.index import IndexAway
from mindbus.logs import logger
from mindbus.principal import Principal
from retrieval.bm25 import LexicalScore
from retrieval.fusion import best_first, fuse
from retrieval.similarity import centred_cosines

# So many of the nearest compete with what the words find.
_NEAREST = 200
_QUESTIONS = 500
_EMBEDDED_WITHIN_S = 5.0
_NO_WORDS = LexicalScore(0.0, ())


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best first; `is_degraded` where only words were compared though meaning was asked for, too."""

    items: Sequence[FoundKem]
    is_degraded: bool = False


class Ranking:
    """A vector is compared with vectors, a text with words too; whatever is away, the rest still answers."""

    def __init__(self, nearness: Nearness, words: Words, embedder: Embedder | None) -> None:
        self.nearness, self.words, self.embedder = nearness, words, embedder
        self._questions: LRUCache[str, Embedding] = LRUCache(_QUESTIONS)

    async def ranked(self, query: KemQuery, principal: Principal, limit: int) -> Ranked:
        """As many as there are up to the limit. Raises WrongVector, DatabaseAway, IndexAway if there is no text."""
        if query.embedding_query is not None:
            self.nearness.index.space.require(query.embedding_query)
        # Another order is one of those that would have come first.
        wanted = limit if query.order_by is None else max(limit, _NEAREST)
        if query.text_query is not None:
            words = await self.words.found(query.text_query, query, principal)
            evidence = _Evidence(words, await self._meaning(query.text_query, query, principal, words))
            found = Ranked(await self._found(evidence, query, principal, wanted), evidence.meaning is None)
        elif query.embedding_query is not None:
            found = Ranked(await self.nearness.nearest(query.embedding_query, query, principal, wanted))
        else:
            found = Ranked([])
        return found if query.order_by is None else Ranked(_in_order(found, query.order_by)[:limit], found.is_degraded)

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


def _in_order(found: Ranked, order_by: OrderBy) -> list[FoundKem]:
    name, direction = order_by.split()
    return sorted(found.items, key=lambda item: (getattr(item.kem, name), item.kem.id), reverse=direction == "desc")

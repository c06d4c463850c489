"""Search over units: by meaning, by words, by both; ranked or in order, a page at a time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial

from cachetools import LRUCache

from bus_schema.embeddings import Embedding
from bus_schema.glm import Explanation, FoundKem, KemPage, RetrieveKems
from bus_schema.identities import Principal
from bus_schema.kem_query import KemQuery
from language.words import language_by_letters
from memory.glm.agreement import COMPARED, Agreement
from memory.glm.index_sync import VectorRelay
from memory.glm.lexical import LexicalSearch
from memory.glm.queries import (
    MAX_RANK,
    KemQueries,
    answerable_by_index,
    cursor_at,
    rank_of,
)
from memory.vectors.index import IndexAway, IndexRefused
from mindbus.logs import logger
from retrieval.bm25 import LexicalScore
from retrieval.embedding.e5 import MODEL, mean_passage
from retrieval.embedding.embedder import Embedder, EmbedderFailure
from retrieval.similarity import (
    FusedParts,
    best_first,
    centred_cosines,
    fuse,
    fused_parts,
    least_in_common,
    standard_scores,
)

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
_MEANS = {MODEL: mean_passage()}
# What does not hold now may still be asked for, yet comes after what says the opposite today.
_OUTDATED = 0.5


# Vector of a text, and those of the units that it is compared with.
Compared = tuple[bytes, Mapping[str, bytes]]
Evidence = tuple[Mapping[str, LexicalScore], Compared | None]


@dataclass(frozen=True, slots=True)
class RankedKems:
    """Results, the best first; `is_degraded` if they were compared by words alone though the query has a text."""

    items: Sequence[FoundKem]
    is_degraded: bool = False


@dataclass
class Weighed:
    """Scores by key with their evidence, which of the units do not hold, and which older one has raised another."""

    scores: dict[str, float]
    lexical: Mapping[str, LexicalScore]
    cosines: Mapping[str, float] | None
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

    def explanation(self, key: str) -> Explanation:
        words, cosine = self.lexical.get(key, _NO_WORDS), (self.cosines or {}).get(key)
        parts = FusedParts(0.0, words.score, 0.0)
        if self.cosines is not None and (cosine is not None or key in self.lexical):
            parts = fused_parts(words.score, self._standard.get(key, 0.0))
        weight = _OUTDATED if key in self.outdated else 1.0
        raised_by = self.raised_by.get(key)
        return Explanation(
            dense=cosine,
            lexical=words.score,
            words=words.words,
            base=parts.base,
            by_words=parts.words,
            by_meaning=parts.meaning,
            raised=0.0 if raised_by is None else self.scores[key] / weight - sum(parts),
            validity=weight,
            raised_by=raised_by,
        )

    @cached_property
    def _standard(self) -> Mapping[str, float]:
        return standard_scores(self.cosines or {})


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
            candidates = await self.index.nearest(vector.raw, answerable_by_index(query), principal, count)
            kems = await self.queries.among([candidate.kem_id for candidate in candidates], query, principal)
            if len(kems) >= limit or len(candidates) < count or count >= _MAX_CANDIDATES:
                break
            count = min(count * _GROWTH, _MAX_CANDIDATES)
        results = [
            FoundKem(
                kem=kems[candidate.kem_id],
                score=candidate.score,
                explain=Explanation(dense=candidate.score, by_meaning=candidate.score),
            )
            for candidate in candidates
            if candidate.kem_id in kems
        ]
        return results[:limit]

    async def _by_text(self, text: str, query: KemQuery, principal: Principal, limit: int) -> RankedKems:
        if await self.queries.is_empty():
            # Nothing to compare a vector with.
            return RankedKems([])
        lexical_scores, compared = await self._evidence(text, query, principal)
        if query.hides_unrelated and await self._are_far(text, query, principal, (lexical_scores, compared)):
            # What does not hold at that time may tell of what is about it then.
            timeless = query.model_copy(update={"as_of": None, "known_at": None})
            evidence = None if timeless == query else await self._evidence(text, timeless, principal)
            if evidence is None or await self._are_far(text, timeless, principal, evidence):
                return RankedKems([])
        weighed = _weighed(lexical_scores, None if compared is None else centred_cosines(*compared))
        await self._weigh(weighed, query, principal)
        ranked, batch = best_first(weighed.scores), max(2 * limit, COMPARED) + _TWINS
        agreement = Agreement()
        items: list[FoundKem] = []
        results: list[FoundKem] = []
        for start in range(0, len(ranked), batch):
            more = ranked[start : start + batch]
            kems = await self.queries.among(more, query, principal)
            items += [
                FoundKem(kem=kems[key], score=weighed.scores[key], explain=weighed.explanation(key))
                for key in more
                if key in kems
            ]
            results = await asyncio.to_thread(agreement.folded, items)
            if len(results) >= max(limit, COMPARED):
                break
        results = await asyncio.to_thread(agreement.with_contradictions, results)
        return RankedKems(results[:limit], is_degraded=compared is None)

    async def _weigh(self, weighed: Weighed, query: KemQuery, principal: Principal) -> None:
        """Lower what does not hold; raise what supersedes it, by whatever number of steps, to where it was."""
        time, candidates = query.holds_at or self.clock(), set(weighed.scores)
        looked_at = candidates
        while looked_at and (outdated := await self.queries.outdated(looked_at, time, query.known_at)):
            looked_at = weighed.raise_over(outdated)
        if added := weighed.scores.keys() - candidates:
            found = await self.queries.among(list(added), query, principal)
            for hidden in added - found.keys():
                del weighed.scores[hidden]
        for key in weighed.outdated & weighed.scores.keys():
            weighed.scores[key] *= _OUTDATED

    async def _are_far(self, text: str, query: KemQuery, principal: Principal, evidence: Evidence) -> bool:
        """Whether a text is about nothing in memory; units with its words may still wait for their vectors.

        Vectors in two languages have too little in common to tell.
        """
        model = self.index.space.model
        lexical, (vector, vectors) = evidence[0], evidence[1] or (b"", {})
        if model not in _MEANS or not vectors or lexical.keys() - vectors.keys():
            return False
        cosines = centred_cosines(vector, vectors, _MEANS[model])
        nearest = max(cosine + lexical.get(key, _NO_WORDS).score for key, cosine in cosines.items())
        if nearest >= least_in_common(len(vectors), len(text.split())):
            return False
        units, language = await self.queries.among(list(vectors), query, principal), language_by_letters(text)
        # The text of those that are artifacts is not at hand.
        texts = [unit.content for unit in units.values() if unit.content]
        return bool(texts) and all(language_by_letters(each) is language for each in texts)

    async def _evidence(self, text: str, query: KemQuery, principal: Principal) -> Evidence:
        """Lexical scores, and the vectors of what they are of and of the nearest units; None without these."""
        lexical = await self.lexical.scores(text, query, principal)
        try:
            vector = query.embedding_query or await self._embedding(text)
            if vector is None:
                return lexical, None
            nearest = await self.index.nearest(vector.raw, answerable_by_index(query), principal, _NEAREST)
            candidates = {candidate.kem_id for candidate in nearest} | lexical.keys()
            return lexical, (vector.raw, await self.queries.vectors(candidates, query, principal, self.index.space))
        except (EmbedderFailure, IndexAway, IndexRefused, TimeoutError) as error:
            logger().warning("searched by words alone", reason=str(error) or "the embedder took too long")
            return lexical, None

    async def _embedding(self, text: str) -> Embedding | None:
        if self.embedder is None:
            return None
        if (cached := self._embeddings.get(text)) is not None:
            return cached
        async with asyncio.timeout(_EMBEDDED_WITHIN_S):
            vector = await self.embedder.query(text)
        self._embeddings[text] = vector
        return vector


def _weighed(lexical: Mapping[str, LexicalScore], cosines: Mapping[str, float] | None) -> Weighed:
    scores = {key: score.score for key, score in lexical.items()}
    return Weighed(scores if cosines is None else fuse(scores, cosines), lexical, cosines)

"""What lies near, as far as rows bear it out."""

from bus_schema.embeddings import Embedding
from bus_schema.glm import Explanation, FoundKem
from bus_schema.kem_query import KemQuery
from memory.glm.retrieval import Retrieval
from memory.vectors.index import VectorIndex
from mindbus.principal import Principal

_MORE = 4
_MOST = 10_000


class Nearness:
    """The index proposes, rows decide: it may be behind, may know times to the second alone."""

    def __init__(self, index: VectorIndex, retrieval: Retrieval) -> None:
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

"""Vectors on a Qdrant server; or, for tests, in the local mode of its client."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from bus_schema.kem_query import KemQuery
from memory.embedding.space import EmbeddingSpace
from memory.vectors.index import IndexAway, IndexOfAnotherSpace
from memory.vectors.points import Hit, Point, point_id
from memory.vectors.qdrant_filters import filter_of
from mindbus.principal import Principal

_PAGE = 1000
_INDEXED = {
    "kem_id_ref": models.PayloadSchemaType.KEYWORD,
    "owner": models.PayloadSchemaType.KEYWORD,
    "visibility": models.PayloadSchemaType.KEYWORD,
    "readers": models.PayloadSchemaType.KEYWORD,
    "created_at_ts": models.PayloadSchemaType.INTEGER,
    "updated_at_ts": models.PayloadSchemaType.INTEGER,
}


class QdrantIndex:
    """One collection for each model; `is_server` has values indexed, which the local mode cannot."""

    def __init__(
        self, client: AsyncQdrantClient, space: EmbeddingSpace, *, name: str = "kems", is_server: bool = True
    ) -> None:
        self.space = space
        self._client, self._is_server = client, is_server
        self._collection = f"{name}-{hashlib.sha256(space.model.encode()).hexdigest()[:12]}"

    async def exists(self) -> bool:
        """As in VectorIndex."""
        with _answering():
            return await self._client.collection_exists(self._collection)

    async def open(self) -> None:
        """As in VectorIndex."""
        with _answering():
            if await self._client.collection_exists(self._collection):
                await self._require_space()
            else:
                await self._create()

    async def write(self, points: Sequence[Point], gone: Sequence[str]) -> None:
        """As in VectorIndex."""
        structs = [
            models.PointStruct(
                id=point_id(point.kem_id),
                vector=np.frombuffer(point.vector, dtype="<f4").tolist(),
                payload=dict(point.payload),
            )
            for point in points
        ]
        with _answering():
            if structs:
                await self._client.upsert(self._collection, structs)
            if gone:
                selector = models.PointIdsList(points=[point_id(kem_id) for kem_id in gone])
                await self._client.delete(self._collection, selector)

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[Hit]:
        """As in VectorIndex."""
        with _answering():
            found = await self._client.query_points(
                self._collection,
                query=np.frombuffer(vector, dtype="<f4").tolist(),
                query_filter=filter_of(query, principal),
                limit=limit,
                with_payload=["kem_id_ref"],
            )
        return [Hit((point.payload or {})["kem_id_ref"], point.score) for point in found.points]

    async def versions(self) -> dict[str, int]:
        """As in VectorIndex."""
        found: dict[str, int] = {}
        offset: models.ExtendedPointId | None = None
        with _answering():
            while True:
                page, following = await self._client.scroll(
                    self._collection, limit=_PAGE, offset=offset, with_payload=["kem_id_ref", "kem_version"]
                )
                for record in page:
                    payload = record.payload or {}
                    found[payload["kem_id_ref"]] = payload["kem_version"]
                if following is None:
                    return found
                offset = following

    async def clear(self) -> None:
        """As in VectorIndex."""
        with _answering():
            await self._client.delete_collection(self._collection)
            await self._create()

    async def close(self) -> None:
        """As in VectorIndex."""
        await self._client.close()

    async def _create(self) -> None:
        vectors = models.VectorParams(size=self.space.dim, distance=models.Distance.COSINE)
        await self._client.create_collection(self._collection, vectors_config=vectors)
        if self._is_server:
            for key, schema in _INDEXED.items():
                await self._client.create_payload_index(self._collection, key, schema)

    async def _require_space(self) -> None:
        params = (await self._client.get_collection(self._collection)).config.params.vectors
        if not isinstance(params, models.VectorParams) or params.size != self.space.dim:
            raise IndexOfAnotherSpace(f"{IndexOfAnotherSpace.__doc__} {self._collection}: {params}, not {self.space}.")


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (ResponseHandlingException, UnexpectedResponse) as trouble:
        raise IndexAway(f"Qdrant: {trouble}") from trouble

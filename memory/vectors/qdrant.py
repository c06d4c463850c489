"""Vector index on a Qdrant server; or, for tests, in the local mode of its client."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from bus_schema.identities import Principal
from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf, Scalar
from memory.vectors.index import (
    PREFIX,
    VALID_FROM,
    VALID_TO,
    IndexAway,
    IndexOfAnotherSpace,
    NearKem,
    VectorPoint,
    epoch_seconds,
    point_id,
)
from retrieval.embedding.embedder import EmbeddingSpace

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def filter_of(query: KemQuery, principal: Principal) -> models.Filter:
    """Conditions and rights of a query as a Qdrant filter."""
    must: list[models.Condition] = [_matching_filter(query.metadata_filters), *_in_time(query)]
    if query.ids:
        must.append(models.HasIdCondition(has_id=[point_id(kem_id) for kem_id in query.ids]))
    if not principal.is_trusted:
        rights = (("visibility", "public"), ("owner", principal.owner), ("readers", principal.owner))
        must.append(models.Filter(should=[_matching(path, value) for path, value in rights]))
    return models.Filter(must=must)


def _in_time(query: KemQuery) -> Iterator[models.Condition]:
    spans = (
        ("created_at_ts", query.created_at_start, query.created_at_end),
        ("updated_at_ts", query.updated_at_start, query.updated_at_end),
    )
    for key, start, end in spans:
        if start is not None or end is not None:
            bounds = models.Range(
                gte=None if start is None else epoch_seconds(start), lte=None if end is None else epoch_seconds(end)
            )
            yield models.FieldCondition(key=key, range=bounds)
    if query.as_of is not None:
        time = epoch_seconds(query.as_of)
        for key, range_ in ((VALID_FROM, models.Range(lte=time)), (VALID_TO, models.Range(gte=time))):
            is_open = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
            yield models.Filter(should=[is_open, models.FieldCondition(key=key, range=range_)])


def _matching_filter(metadata_filter: MetadataFilter) -> models.Filter:
    match metadata_filter:
        case AllOf(AND=parts):
            return models.Filter(must=[_matching_filter(part) for part in parts])
        case AnyOf(OR=parts):
            return models.Filter(should=[_matching_filter(part) for part in parts])
        case NoneOf(NOT=part):
            return models.Filter(must_not=[_matching_filter(part)])
        case _:
            return models.Filter(must=[_having(_path(key), condition) for key, condition in metadata_filter.items()])


def _having(path: str, condition: Condition) -> models.Condition:
    match condition:
        case OneOf(any_of=values):
            return models.Filter(should=[_matching(path, value) for value in values])
        case Between(gt=gt, gte=gte, lt=lt, lte=lte):
            return models.FieldCondition(key=path, range=models.Range(gt=gt, gte=gte, lt=lt, lte=lte))
        case _:
            return _matching(path, condition)


def _matching(path: str, value: Scalar) -> models.FieldCondition:
    if isinstance(value, str | bool):
        return models.FieldCondition(key=path, match=models.MatchValue(value=value))
    # A range, because a match would distinguish 1 from 1.0.
    return models.FieldCondition(key=path, range=models.Range(gte=value, lte=value))


def _path(key: str) -> str:
    """Payload path, quoted where a dot would address a nested object."""
    name = PREFIX + key
    return name if _PLAIN_KEY.fullmatch(name) else f'"{name}"'


_PAGE = 1000
_INDEXED = {
    "kem_id_ref": models.PayloadSchemaType.KEYWORD,
    "owner": models.PayloadSchemaType.KEYWORD,
    "visibility": models.PayloadSchemaType.KEYWORD,
    "readers": models.PayloadSchemaType.KEYWORD,
    "created_at_ts": models.PayloadSchemaType.INTEGER,
    "updated_at_ts": models.PayloadSchemaType.INTEGER,
    VALID_FROM: models.PayloadSchemaType.INTEGER,
    VALID_TO: models.PayloadSchemaType.INTEGER,
}


class QdrantIndex:
    """VectorIndex with one collection per model; `is_server` creates payload indexes, which local mode lacks."""

    is_shared = True

    def __init__(
        self, client: AsyncQdrantClient, space: EmbeddingSpace, *, name: str = "kems", is_server: bool = True
    ) -> None:
        self.space = space
        self._client, self._is_server = client, is_server
        self._collection = f"{name}-{hashlib.sha256(space.model.encode()).hexdigest()[:12]}"

    async def exists(self) -> bool:
        with _answering():
            return await self._client.collection_exists(self._collection)

    async def open(self) -> None:
        with _answering():
            if await self._client.collection_exists(self._collection):
                await self._require_space()
            else:
                await self._create()

    async def write(self, points: Sequence[VectorPoint], deleted_ids: Sequence[str]) -> None:
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
            if deleted_ids:
                selector = models.PointIdsList(points=[point_id(kem_id) for kem_id in deleted_ids])
                await self._client.delete(self._collection, selector)

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        with _answering():
            response = await self._client.query_points(
                self._collection,
                query=np.frombuffer(vector, dtype="<f4").tolist(),
                query_filter=filter_of(query, principal),
                limit=limit,
                with_payload=["kem_id_ref"],
            )
        return [NearKem((point.payload or {})["kem_id_ref"], point.score) for point in response.points]

    async def versions(self) -> dict[str, int]:
        versions: dict[str, int] = {}
        offset: models.ExtendedPointId | None = None
        with _answering():
            while True:
                page, following = await self._client.scroll(
                    self._collection, limit=_PAGE, offset=offset, with_payload=["kem_id_ref", "kem_version"]
                )
                for record in page:
                    payload = record.payload or {}
                    versions[payload["kem_id_ref"]] = payload["kem_version"]
                if following is None:
                    return versions
                offset = following

    async def clear(self) -> None:
        with _answering():
            await self._client.delete_collection(self._collection)
            await self._create()

    async def close(self) -> None:
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
    except (ResponseHandlingException, UnexpectedResponse) as error:
        raise IndexAway(f"Qdrant: {error}") from error

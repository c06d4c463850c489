"""Vector index on a Qdrant server; or, for tests, in the local mode of its client."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from bus_schema.identities import Principal
from bus_schema.kem_match import facets
from bus_schema.kem_query import AllOf, AnyOf, Between, Condition, KemQuery, MetadataFilter, NoneOf, OneOf, Scalar
from memory.vectors.index import (
    PREFIX,
    VALID_FROM,
    VALID_TO,
    IndexAway,
    IndexOfAnotherSpace,
    IndexRefused,
    NearKem,
    VectorPoint,
    epoch_seconds,
    point_id,
)
from mindbus.logs import logger
from retrieval.embedding.embedder import EmbeddingSpace

FACETS = "facets"
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def filter_of(query: KemQuery, principal: Principal) -> models.Filter:
    """Conditions and rights of a query as a Qdrant filter."""
    must: list[models.Condition] = [_matching_filter(query.metadata_filters), *_in_time(query)]
    if query.ids:
        must.append(models.HasIdCondition(has_id=[point_id(kem_id) for kem_id in query.ids]))
    if not principal.is_trusted:
        rights = (("visibility", "public"), ("owner", principal.owner), ("readers", principal.owner))
        must.append(models.Filter(should=[_among(field, [value]) for field, value in rights]))
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
            return models.Filter(must=[_having(key, condition) for key, condition in metadata_filter.items()])


def _having(key: str, condition: Condition) -> models.Condition:
    match condition:
        case OneOf(any_of=values):
            return _among(FACETS, [_facet(key, value) for value in values])
        case Between(gt=gt, gte=gte, lt=lt, lte=lte):
            return models.FieldCondition(key=_path(key), range=models.Range(gt=gt, gte=gte, lt=lt, lte=lte))
        case _:
            return _among(FACETS, [_facet(key, condition)])


def _among(field: str, values: list[str]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=values))


def _facet(key: str, value: Scalar) -> str:
    """Key and value as one text; 1 and 1.0 are the same, 1 and true are not."""
    return f"{key}={json.dumps(value if isinstance(value, str | bool) else float(value), ensure_ascii=False)}"


def _path(key: str) -> str:
    """Payload path, quoted where a dot would address a nested object."""
    name = PREFIX + key
    return name if _PLAIN_KEY.fullmatch(name) else f'"{name}"'


def _ranges(metadata_filter: MetadataFilter) -> Iterator[str]:
    """Payload paths of the numbers that a filter bounds."""
    match metadata_filter:
        case AllOf(AND=parts) | AnyOf(OR=parts):
            for part in parts:
                yield from _ranges(part)
        case NoneOf(NOT=part):
            yield from _ranges(part)
        case _:
            yield from (_path(key) for key, condition in metadata_filter.items() if isinstance(condition, Between))


_PAGE = 1000
# Requests of more than 32 MiB of JSON are refused; a number of a vector takes up to 23 characters.
_BATCH_BYTES, _BYTES_PER_NUMBER = 16 * 1024**2, 23
# Readers choose which numbers they bound; each index costs the server memory.
_MOST_INDEXED = 100
# All other answers of 400 and above are the same however often one asks.
_PASSING_TROUBLES = {408, 425, 429}
_INDEXED = {
    "kem_id_ref": models.PayloadSchemaType.KEYWORD,
    "owner": models.PayloadSchemaType.KEYWORD,
    "visibility": models.PayloadSchemaType.KEYWORD,
    "readers": models.PayloadSchemaType.KEYWORD,
    FACETS: models.PayloadSchemaType.KEYWORD,
    "created_at_ts": models.PayloadSchemaType.INTEGER,
    "updated_at_ts": models.PayloadSchemaType.INTEGER,
    VALID_FROM: models.PayloadSchemaType.INTEGER,
    VALID_TO: models.PayloadSchemaType.INTEGER,
}


class QdrantIndex:
    """VectorIndex with one collection per model.

    `is_server` creates payload indexes, which local mode lacks: a server in strict mode refuses to filter without. One
    is of all values of metadata, whatever their keys; those of numbers are made when a reader first bounds them.
    """

    is_shared = True

    def __init__(
        self, client: AsyncQdrantClient, space: EmbeddingSpace, *, name: str = "kems", is_server: bool = True
    ) -> None:
        self.space = space
        self._client, self._is_server = client, is_server
        self._indexed = set[str]()
        self._collection = f"{name}-{hashlib.sha256(space.model.encode()).hexdigest()[:12]}"

    async def exists(self) -> bool:
        with _answering():
            return await self._client.collection_exists(self._collection)

    async def open(self) -> None:
        with _answering():
            if await self._client.collection_exists(self._collection):
                await self._use_existing()
            else:
                await self._create()

    async def write(self, points: Sequence[VectorPoint], deleted_ids: Sequence[str]) -> None:
        structs = [
            models.PointStruct(
                id=point_id(point.kem_id),
                vector=np.frombuffer(point.vector, dtype="<f4").tolist(),
                payload={**point.payload, FACETS: _facets_of(point.payload)},
            )
            for point in points
        ]
        with _answering():
            for batch in _batches(structs, self.space.dim):
                await self._client.upsert(self._collection, batch)
            if deleted_ids:
                selector = models.PointIdsList(points=[point_id(kem_id) for kem_id in deleted_ids])
                await self._client.delete(self._collection, selector)

    async def nearest(self, vector: bytes, query: KemQuery, principal: Principal, limit: int) -> list[NearKem]:
        with _answering():
            numbers = _ranges(query.metadata_filters)
            await self._index((field, models.PayloadSchemaType.FLOAT) for field in numbers)
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
        self._indexed = set()
        await self._index(_INDEXED.items())

    async def _use_existing(self) -> None:
        info = await self._client.get_collection(self._collection)
        params = info.config.params.vectors
        if not isinstance(params, models.VectorParams) or params.size != self.space.dim:
            raise IndexOfAnotherSpace(f"{IndexOfAnotherSpace.__doc__} {self._collection}: {params}, not {self.space}.")
        self._indexed = set(info.payload_schema)
        if self._is_server and FACETS not in self._indexed:
            logger().warning("the index in Qdrant is of an earlier version: made anew from the rows")
            await self.clear()
        # Those that a start which was cut short did not come to.
        await self._index(_INDEXED.items())

    async def _index(self, fields: Iterable[tuple[str, models.PayloadSchemaType]]) -> None:
        """Make the payload indexes that are not there, as far as there is room."""
        for field, schema in fields if self._is_server else ():
            if field not in self._indexed and len(self._indexed) < _MOST_INDEXED:
                await self._client.create_payload_index(self._collection, field, schema)
                self._indexed.add(field)


def _facets_of(payload: Mapping[str, Any]) -> list[str]:
    metadata = {key.removeprefix(PREFIX): value for key, value in payload.items() if key.startswith(PREFIX)}
    return [_facet(key, value) for key, value in facets(metadata)]


def _batches(points: Iterable[models.PointStruct], dim: int) -> Iterator[list[models.PointStruct]]:
    batch, size = list[models.PointStruct](), 0
    for point in points:
        bytes_of_point = dim * _BYTES_PER_NUMBER + len(json.dumps(point.payload))
        if batch and size + bytes_of_point > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(point)
        size += bytes_of_point
    if batch:
        yield batch


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except UnexpectedResponse as error:
        status = error.status_code or 500
        if status >= 500 or status in _PASSING_TROUBLES:
            raise IndexAway(f"Qdrant: {error}") from error
        raise IndexRefused(message=_refusal(status, error.content)) from error
    except ResponseHandlingException as error:
        raise IndexAway(f"Qdrant: {error}") from error


def _refusal(status: int, content: bytes) -> str:
    if status in (401, 403):
        return f"Qdrant refuses the key (HTTP {status}): set MINDBUS_QDRANT_API_KEY to one that may read and write."
    words = content.decode(errors="replace")
    with suppress(ValueError, LookupError, TypeError):
        words = json.loads(content)["status"]["error"]
    return f"Qdrant refuses (HTTP {status}): {words}"

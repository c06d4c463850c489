"""What a server of Qdrant refuses is not asked of it; where it refuses all the same, its reason is told."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from qdrant_client import AsyncQdrantClient

from bus_schema.kem_query import KemQuery
from memory.vectors.index import IndexAway, IndexRefused
from memory.vectors.qdrant import QdrantIndex
from tests.clocks import NOON
from tests.memory_kit import RESEARCHER, SPACE
from tests.qdrant_server import QdrantServer
from tests.unit.memory.test_vectors import a_point, near

pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    with QdrantServer(key="secret") as found:
        yield found


@pytest.fixture
async def index(server: QdrantServer) -> AsyncIterator[QdrantIndex]:
    async with an_index(server) as found:
        await found.open()
        yield found


@asynccontextmanager
async def an_index(server: QdrantServer, key: str = "secret") -> AsyncIterator[QdrantIndex]:
    index = QdrantIndex(AsyncQdrantClient(url=server.url, api_key=key, check_compatibility=False), SPACE)
    yield index
    await index.close()


async def test_whatever_is_filtered_by_has_an_index_made_once(index: QdrantIndex, server: QdrantServer) -> None:
    await index.write([a_point("a", metadata={"status": "done", "n": 1, "ok": True}), a_point("b")], [])
    made = server.asked["PUT index"]

    for _ in range(2):
        assert await near(index, metadata_filters={"status": "done"}, as_of=NOON) == ["a"]
        assert await near(index, metadata_filters={"OR": [{"n": {"gte": 1}}, {"ok": True}]}) == ["a"]
        assert await near(index, metadata_filters={"NOT": {"status": {"any_of": ["done", 1]}}}) == ["b"]

    assert server.asked["PUT index"] == made + 1


async def test_readers_cannot_make_the_server_keep_any_number_of_indexes(
    index: QdrantIndex, server: QdrantServer
) -> None:
    for number in range(100 - server.asked["PUT index"]):
        await near(index, metadata_filters={f"key-{number}": {"gt": 1}})

    with pytest.raises(IndexRefused, match='Index required but not found for "md_one-more"'):
        await near(index, metadata_filters={"one-more": {"gt": 1}})
    assert server.asked["PUT index"] == 100


async def test_a_collection_of_an_earlier_version_is_made_anew(index: QdrantIndex, server: QdrantServer) -> None:
    await index.write([a_point("a")], [])
    (fields,) = server.indexed.values()
    del fields["facets"]

    async with an_index(server) as again:
        await again.open()
        # The rows fill it, since it has none of them.
        assert await again.versions() == {}
        await again.write([a_point("a", metadata={"status": "done"})], [])
        assert await near(again, metadata_filters={"status": "done"}) == ["a"]


async def test_a_start_that_was_cut_short_is_made_up_for(index: QdrantIndex, server: QdrantServer) -> None:
    await index.write([a_point("a", valid_from=NOON)], [])
    (fields,) = server.indexed.values()
    del fields["valid_from_ts"], fields["valid_to_ts"]

    async with an_index(server) as again:
        await again.open()
        assert await near(again, as_of=NOON) == ["a"]


async def test_no_request_is_larger_than_a_server_takes(index: QdrantIndex, server: QdrantServer) -> None:
    points = [a_point(f"long-{number}") for number in range(12)]

    await index.write([replace(point, payload={**point.payload, "md_text": "x" * 3_000_000}) for point in points], [])

    assert len(await near(index)) == 12
    assert server.asked["PUT points"] == 3


async def test_a_wrong_key_is_said_with_what_to_set(server: QdrantServer) -> None:
    async with an_index(server, "wrong") as index:
        with pytest.raises(IndexRefused, match=r"401.*MINDBUS_QDRANT_API_KEY"):
            await index.open()


async def test_a_collection_that_somebody_deleted_is_named(index: QdrantIndex, server: QdrantServer) -> None:
    (name,) = server.indexed
    server.indexed.clear()

    with pytest.raises(IndexRefused, match=rf"404.*{name}"):
        await index.versions()


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_server_in_trouble_is_asked_again(index: QdrantIndex, server: QdrantServer, status: int) -> None:
    server.trouble = status

    with pytest.raises(IndexAway):
        await index.nearest(a_point("a").vector, KemQuery(), RESEARCHER, 1)

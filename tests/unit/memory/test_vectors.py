"""Every index of vectors does the same; what it finds, rows bear out."""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from qdrant_client import AsyncQdrantClient

from benchmarks.servers.postgres import libpq_url
from bus_schema.embeddings import Embedding
from bus_schema.identities import Principal
from bus_schema.kem import Kem
from bus_schema.kem_match import meets_filter
from bus_schema.kem_query import KemQuery
from memory.vectors.embedded import EmbeddedIndex
from memory.vectors.index import IndexAway, IndexOfAnotherSpace, VectorIndex, VectorPoint, point_id, point_of
from memory.vectors.pgvector import PgVectorIndex
from memory.vectors.qdrant import QdrantIndex
from mindbus.sql.database import Database
from retrieval.embedding.embedder import EmbeddingSpace
from tests import qdrants
from tests.clocks import NOON
from tests.memory_kit import ANNA, CRITIC, RESEARCHER, SPACE
from tests.postgres import Postgres
from tests.qdrant_server import QdrantServer
from tests.unit.memory.test_retrieval import METADATA, a_tree

EAST = (1.0, 0.0, 0.0, 0.0)
SWM = Principal("svc.swm", is_trusted=True)

# An index at the place where the one before it was.
OpenIndex = Callable[[EmbeddingSpace], VectorIndex]


# A real server wherever one is named for the tests.
KINDS = (
    "embedded",
    "double",
    pytest.param("pgvector", marks=pytest.mark.backends),
    *(["server"] if qdrants.URL else []),
)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def extended_database(kind: str, request: pytest.FixtureRequest) -> str:
    """One as an administrator prepares it, with pgvector outside the schema of the rows; none where none is needed."""
    if kind != "pgvector":
        return ""
    server: Postgres = request.getfixturevalue("pgvector")
    url = server.create()
    with psycopg.connect(libpq_url(url), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE SCHEMA glm")
    return url


@pytest.fixture
async def open_index(kind: str, extended_database: str, tmp_path: Path) -> AsyncIterator[OpenIndex]:
    async with AsyncExitStack() as stack:
        name = await stack.enter_async_context(qdrants.own_name()) if kind == "server" else ""

        double = stack.enter_context(QdrantServer()) if kind == "double" else None

        def opening(space: EmbeddingSpace) -> VectorIndex:
            if kind == "embedded":
                index: VectorIndex = EmbeddedIndex(tmp_path / "glm.vectors", space)
            elif extended_database:
                index = PgVectorIndex(Database(extended_database, "glm"), space)
            elif double is None:
                index = QdrantIndex(qdrants.client(), space, name=name)
            else:
                index = QdrantIndex(AsyncQdrantClient(url=double.url, check_compatibility=False), space)
            stack.push_async_callback(index.close)
            return index

        yield opening


@pytest.fixture
async def index(open_index: OpenIndex) -> VectorIndex:
    found = open_index(SPACE)
    await found.open()
    return found


def a_point(kem_id: str, numbers: tuple[float, ...] = EAST, version: int = 1, **fields: Any) -> VectorPoint:
    raw = Embedding.of(SPACE.model, numbers).raw
    times = {"created_at": NOON, "updated_at": NOON}
    kem = Kem.model_validate(
        {"id": kem_id, "owner": "agent.researcher", "content": "a", "version": version} | times | fields
    )
    return point_of(kem, raw, [*kem.readers, *kem.writers])


async def near(index: VectorIndex, by: Principal = RESEARCHER, limit: int = 50, **query: Any) -> list[str]:
    hits = await index.nearest(Embedding.of(SPACE.model, EAST).raw, KemQuery.model_validate(query), by, limit)
    return [hit.kem_id for hit in hits]


async def test_the_nearest_comes_first_whatever_its_length(index: VectorIndex) -> None:
    await index.write(
        [a_point("far", (0, 1, 0, 0)), a_point("near", (90, 10, 0, 0)), a_point("back", (-1, 0, 0, 0))], []
    )

    hits = await index.nearest(Embedding.of(SPACE.model, (2, 0, 0, 0)).raw, KemQuery(), RESEARCHER, 3)

    assert [hit.kem_id for hit in hits] == ["near", "far", "back"]
    assert [hit.score for hit in hits] == pytest.approx([90 / math.hypot(90, 10), 0, -1], abs=1e-6)
    assert await near(index, limit=1) == ["near"]


async def test_points_that_held_at_a_time_are_found(index: VectorIndex) -> None:
    day = timedelta(days=1)
    await index.write([a_point("always"), a_point("until", valid_to=NOON), a_point("since", valid_from=NOON)], [])

    assert sorted(await near(index)) == ["always", "since", "until"]
    assert sorted(await near(index, as_of=NOON - day)) == ["always", "until"]
    assert sorted(await near(index, as_of=NOON + day)) == ["always", "since"]


async def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    assert await near(index) == []
    assert await index.versions() == {}


async def test_a_point_is_replaced_or_goes(index: VectorIndex) -> None:
    await index.write([a_point("a"), a_point("b", metadata={"n": 1})], [])
    await index.write([a_point("b", (0, 1, 0, 0), version=2, metadata={"n": 2})], ["a", "never"])

    assert await index.versions() == {"b": 2}
    assert await near(index, metadata_filters={"n": 1}) == []
    assert await near(index, metadata_filters={"n": 2}) == ["b"]


async def test_what_was_written_is_there_after_a_restart(index: VectorIndex, open_index: OpenIndex) -> None:
    await index.write([a_point("a", metadata={"тема": "релиз"}), a_point("gone")], ["gone"])
    await index.close()

    again = open_index(SPACE)
    assert await again.exists()
    await again.open()

    assert await again.versions() == {"a": 1}
    assert await near(again, metadata_filters={"тема": "релиз"}) == ["a"]


async def test_an_index_is_there_once_it_was_opened(open_index: OpenIndex) -> None:
    index = open_index(SPACE)

    assert not await index.exists()
    await index.open()
    assert await index.exists()


async def test_vectors_of_another_length_are_not_taken_for_these(index: VectorIndex, open_index: OpenIndex) -> None:
    await index.close()

    with pytest.raises(IndexOfAnotherSpace):
        await open_index(EmbeddingSpace(SPACE.model, 5)).open()


async def test_a_cleared_index_can_be_filled_again(index: VectorIndex) -> None:
    await index.write([a_point("a")], [])
    await index.clear()

    assert await near(index) == []
    await index.write([a_point("b")], [])
    assert await near(index) == ["b"]


async def test_it_means_by_a_filter_what_memory_means(index: VectorIndex) -> None:
    await index.write([a_point(name, metadata=metadata) for name, metadata in METADATA.items()], [])

    for seed in range(100):
        tree = a_tree(random.Random(seed))
        wanted = KemQuery.model_validate({"metadata_filters": tree}).metadata_filters
        meant = {name for name, metadata in METADATA.items() if meets_filter(metadata, wanted)}
        assert set(await near(index, metadata_filters=tree)) == meant, tree


@pytest.mark.parametrize("key", ["a.b", "a[0]", "тема", "a-b", "a/b", "*", "[]", "a."])
async def test_a_key_is_a_name_and_no_path(index: VectorIndex, key: str) -> None:
    await index.write([a_point("a", metadata={key: "x"}), a_point("b", metadata={"a": {"b": "x"}})], [])

    assert await near(index, metadata_filters={key: "x"}) == ["a"]


async def test_ids_and_times_select(index: VectorIndex) -> None:
    hours = {name: NOON + timedelta(hours=hour) for hour, name in enumerate("abc")}
    await index.write([a_point(name, created_at=time, updated_at=time) for name, time in hours.items()], [])

    assert await near(index, ids=["a", "z"]) == ["a"]
    assert set(await near(index, created_at_start=hours["b"])) == {"b", "c"}
    assert set(await near(index, updated_at_end=hours["b"])) == {"a", "b"}
    assert await near(index, created_at_start=hours["b"], updated_at_end=hours["b"]) == ["b"]


@pytest.mark.parametrize(
    ("rights", "readers"),
    [
        ({"visibility": "public"}, {RESEARCHER, CRITIC, ANNA}),
        ({"visibility": "private"}, {RESEARCHER}),
        ({"visibility": "readers", "readers": ["user.anna"]}, {RESEARCHER, ANNA}),
        ({"visibility": "private", "writers": ["agent.critic"]}, {RESEARCHER, CRITIC}),
    ],
)
async def test_only_who_may_read_finds(index: VectorIndex, rights: dict[str, Any], readers: set[Principal]) -> None:
    await index.write([a_point("a", **rights)], [])

    for principal in (RESEARCHER, CRITIC, ANNA):
        assert await near(index, principal) == ["a"] * (principal in readers)
    assert await near(index, SWM) == ["a"]


async def test_a_small_limit_is_filled_past_what_is_hidden(index: VectorIndex) -> None:
    hidden = [a_point(f"h{n}", (1, n / 1000, 0, 0), visibility="private") for n in range(50)]
    await index.write([*hidden, a_point("shown", (0, 1, 0, 0))], [])

    assert await near(index, CRITIC, limit=1) == ["shown"]


@pytest.mark.slow
async def test_many_points_come_and_go(index: VectorIndex) -> None:
    chance = random.Random(7)
    vectors = {f"kem_{n}": tuple(chance.uniform(-1, 1) for _ in range(4)) for n in range(1200)}
    await index.write([a_point(name, numbers) for name, numbers in vectors.items()], [])
    gone = [f"kem_{n}" for n in range(0, 1200, 2)]
    await index.write([], gone)
    for name in gone:
        del vectors[name]

    expected = sorted(vectors, key=lambda name: -vectors[name][0] / math.hypot(*vectors[name]))[:10]
    assert await near(index, limit=10) == expected
    assert set(await index.versions()) == vectors.keys()


def test_a_point_has_the_payload_of_the_specification() -> None:
    point = a_point("kem_1", metadata={"source": "web", "n": 2, "ok": True, "tags": ["a", None], "deep": {"a": 1}})

    assert point.payload == {
        "kem_id_ref": "kem_1",
        "md_source": "web",
        "md_n": 2,
        "md_ok": True,
        "md_tags": ["a"],
        "created_at_ts": int(NOON.timestamp()),
        "updated_at_ts": int(NOON.timestamp()),
        "kem_version": 1,
        "owner": "agent.researcher",
        "visibility": "public",
        "readers": [],
    }
    assert point_id("kem_1") == "5cb795d3-97e5-5d2d-b818-9b1119016612"


async def test_a_broken_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "glm.vectors"
    file.write_bytes(b"no database" * 1000)

    with pytest.raises(IndexAway, match=r"glm\.vectors: file is not a database"):
        await EmbeddedIndex(file, SPACE).open()


async def test_the_file_knows_whose_vectors_it_has(tmp_path: Path) -> None:
    first = EmbeddedIndex(tmp_path / "glm.vectors", SPACE)
    await first.open()
    await first.close()

    with pytest.raises(IndexOfAnotherSpace, match="model='other'"):
        await EmbeddedIndex(tmp_path / "glm.vectors", EmbeddingSpace("other", SPACE.dim)).open()


async def test_an_index_that_is_closed_lets_a_write_end_for_which_nobody_waits(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "glm.vectors", SPACE)
    for number in range(5):
        await index.open()
        writing = asyncio.create_task(index.write([a_point(f"{number}_{each}") for each in range(500)], []))
        await asyncio.wait([writing], timeout=0.002)
        writing.cancel()
        await index.close()
    await index.open()

    assert len(await index.versions()) % 500 == 0
    await index.close()

"""Units at hand, in this process or in Redis: one behaviour (spec 000 §4.3.1, §7.2.1)."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from bus_schema.kem_match import matches_query, sorted_kems
from bus_schema.kem_query import KemQuery
from memory.swm.cache import EmbeddedCache, KemCache
from memory.swm.redis_cache import RedisCache
from memory.swm.working_memory import page_of
from mindbus.sql.database import Database
from mindbus.testing.wait import until
from tests.memory_kit import ANNA, CRITIC, RESEARCHER, Library, a_vector
from tests.postgres import DatabaseOf
from tests.swm_kit import INDEXED, a_kem

BEGINNING = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture(params=["embedded", pytest.param("redis", marks=pytest.mark.backends)])
def url(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.getfixturevalue("redis_url") if request.param == "redis" else None
    return found


@pytest.fixture
async def cache(url: str | None) -> AsyncIterator[KemCache]:
    found = EmbeddedCache(10**6, INDEXED) if url is None else RedisCache(url, INDEXED)
    await found.open()
    yield found
    await found.close()


@pytest.fixture
async def library(sqlite_database_of: DatabaseOf) -> AsyncIterator[Library]:
    found = Library(Database(sqlite_database_of("glm"), "glm"))
    yield found
    await found.database.dispose()


async def found(cache: KemCache, by: object = RESEARCHER, **query: object) -> list[str]:
    asked = KemQuery.model_validate(query)
    page = await page_of(cache.ordered, asked, by, None, 50)  # type: ignore[arg-type]  # an Principal
    return [item.kem.id for item in page.items]


async def test_a_unit_comes_back_as_it_was(cache: KemCache, library: Library) -> None:
    kem = a_kem(
        library,
        content="Выпуск перенесён на пятницу.",
        content_type="text/markdown",
        metadata={"type": "решение", "tags": ["a", "b"], "n": 1.5, "nested": {"deep": [1, None]}},
        embeddings=a_vector(1, 2, 3, 4),
        visibility="readers",
        readers=["user.anna"],
        writers=["agent.critic"],
        source={"start": 1, "end": 5},
        supersedes=["kem_0"],
        valid_from=library.clock() - timedelta(days=2),
        valid_to=library.clock() - timedelta(days=1),
        expires_at=library.clock() + timedelta(days=1),
    ).model_copy(update={"superseded_by": "kem_9"})

    await cache.put(kem)

    assert await cache.get(kem.id) == kem
    assert await found(cache, as_of=library.clock() - timedelta(hours=36)) == [kem.id]
    assert await found(cache, as_of=library.clock()) == []
    assert await cache.get("kem_2") is None


async def test_all_that_a_question_gives_is_anded(cache: KemCache, library: Library) -> None:
    for number in range(6):
        await cache.put(a_kem(library, f"kem_{number}", metadata={"type": "ab"[number % 2], "size": number}))
        library.clock.advance(seconds=10)
    noon = library.clock() - timedelta(minutes=1)

    assert await found(cache) == [f"kem_{number}" for number in (5, 4, 3, 2, 1, 0)]
    assert await found(cache, metadata_filters={"type": "a"}) == ["kem_4", "kem_2", "kem_0"]
    assert await found(cache, ids=["kem_1", "kem_2", "kem_9"], metadata_filters={"type": "a"}) == ["kem_2"]
    assert await found(cache, metadata_filters={"type": "a", "size": {"gt": 1}}) == ["kem_4", "kem_2"]
    assert await found(cache, metadata_filters={"OR": [{"size": 0}, {"size": 5}]}) == ["kem_5", "kem_0"]
    assert await found(cache, metadata_filters={"type": {"any_of": ["a", "c"]}}, order_by="id asc") == [
        "kem_0",
        "kem_2",
        "kem_4",
    ]
    times = {"updated_at_start": noon + timedelta(seconds=10), "created_at_end": noon + timedelta(seconds=30)}
    assert await found(cache, **times) == ["kem_3", "kem_2", "kem_1"]


async def test_a_list_is_found_by_its_members(cache: KemCache, library: Library) -> None:
    await cache.put(a_kem(library, metadata={"topic": ["law", "ai:ethics", "этика"]}))

    assert await found(cache, metadata_filters={"topic": "ai:ethics"}) == ["kem_1"]
    assert await found(cache, metadata_filters={"topic": "этика"}) == ["kem_1"]


async def test_a_unit_that_changes_is_found_by_what_it_is_now(cache: KemCache, library: Library) -> None:
    await cache.put(a_kem(library, metadata={"type": "a"}))
    await cache.put(a_kem(library, metadata={"type": "b"}))

    assert await found(cache, metadata_filters={"type": "a"}) == []
    assert await found(cache, metadata_filters={"type": "b"}) == ["kem_1"]


async def test_what_was_dropped_is_not_told_as_evicted(cache: KemCache, library: Library) -> None:
    await cache.put(a_kem(library))

    assert await cache.drop("kem_1")
    assert not await cache.drop("kem_1")
    assert await found(cache) == []
    assert await cache.take_evicted() == []


async def test_what_is_private_is_not_found_by_others(cache: KemCache, library: Library) -> None:
    await cache.put(a_kem(library, "kem_1", visibility="private", metadata={"type": "a"}))
    await cache.put(a_kem(library, "kem_2", visibility="readers", readers=["user.anna"]))
    await cache.put(a_kem(library, "kem_3", visibility="private", writers=["agent.critic"]))

    assert await found(cache, order_by="id asc") == ["kem_1", "kem_2", "kem_3"]
    assert await found(cache, ANNA) == ["kem_2"]
    assert await found(cache, CRITIC) == ["kem_3"]
    assert await found(cache, CRITIC, metadata_filters={"type": "a"}) == []


async def test_clear_counts_what_there_was(cache: KemCache, library: Library) -> None:
    await cache.put(a_kem(library, "kem_1"))
    await cache.put(a_kem(library, "kem_2"))

    assert await cache.clear() == 2
    assert await found(cache) == []


async def every_page(cache: KemCache, query: KemQuery, size: int) -> list[str]:
    """Ids of all pages of a query."""
    cursor, seen = None, []
    while True:
        page = await page_of(cache.ordered, query, RESEARCHER, cursor, size)
        seen += [item.kem.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return seen


@pytest.mark.parametrize("order", [None, "created_at asc", "created_at desc", "updated_at asc", "id asc", "id desc"])
@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"metadata_filters": {"type": "a"}},
        {"metadata_filters": {"size": {"any_of": [1, 2]}}},
        {"created_at_start": BEGINNING + timedelta(seconds=2), "updated_at_end": BEGINNING + timedelta(seconds=5)},
        {"ids": ["kem_003", "kem_250", "kem_absent"]},
    ],
)
async def test_pages_follow_each_other_without_gap_or_repetition(
    cache: KemCache, library: Library, order: str | None, conditions: dict[str, Any]
) -> None:
    kems = [
        # Three hundred in one second, then a second or more between two.
        a_kem(library, f"kem_{number:03}", metadata={"type": "ab"[number % 2], "size": number % 5}).model_copy(
            update={
                "created_at": BEGINNING + timedelta(milliseconds=number * 7919 % 1000 if number < 300 else number * 20),
                "updated_at": BEGINNING + timedelta(milliseconds=number * 1013 % 9000),
            }
        )
        for number in range(420)
    ]
    for kem in kems:
        await cache.put(kem)
    query = KemQuery.model_validate({"order_by": order} | conditions)

    assert await every_page(cache, query, 90) == [
        kem.id for kem in sorted_kems((kem for kem in kems if matches_query(kem, query)), query)
    ]


@pytest.mark.backends
async def test_redis_is_read_as_far_as_a_page_needs(redis_url: str, library: Library) -> None:
    cache = RedisCache(redis_url, INDEXED)
    await cache.open()
    for number in range(900):
        kem = a_kem(library, f"kem_{number:03}")
        await cache.put(kem.model_copy(update={"updated_at": BEGINNING + timedelta(seconds=number // 10)}))
    async with Redis.from_url(redis_url) as redis:
        await redis.config_resetstat()
        page = await page_of(cache.ordered, KemQuery(), RESEARCHER, None, 20)
        read = (await redis.info("commandstats"))["cmdstat_hgetall"]["calls"]
    await cache.close()

    assert [item.kem.id for item in page.items] == [f"kem_{number}" for number in range(899, 879, -1)]
    assert read <= 210


async def test_a_cache_can_be_closed_then_opened_again(cache: KemCache, library: Library) -> None:
    await cache.close()
    await cache.open()
    await cache.put(a_kem(library))

    assert await found(cache) == ["kem_1"]


@pytest.mark.backends
async def test_redis_holds_the_keys_and_fields_of_the_specification(redis_url: str, library: Library) -> None:
    cache = RedisCache(redis_url, INDEXED, ttl_s=60)
    await cache.open()
    kem = a_kem(library, metadata={"type": "document", "other": "x", "n": 1}, embeddings=a_vector(1, 0, 0, 0))
    await cache.put(kem)
    async with Redis.from_url(redis_url, decode_responses=False) as redis:
        fields = await redis.hgetall("swm_kem:kem_1")
        second = int(kem.updated_at.timestamp())
        seed_fields = {
            b"id": b"kem_1",
            b"content_type": b"text/plain",
            b"content": b"It is Friday.",
            b"metadata": b'{"type":"document","other":"x","n":1}',
            b"created_at": kem.created_at.isoformat().encode(),
            b"updated_at": kem.updated_at.isoformat().encode(),
            b"created_at_ts": b"%d" % second,
            b"updated_at_ts": b"%d" % second,
        }
        assert seed_fields.items() <= fields.items()
        assert len(fields[b"embeddings"]) == 4 * 4
        assert await redis.smembers("swm_idx:meta:type:document") == {b"kem_1"}
        assert await redis.exists("swm_idx:meta:other:x") == 0
        for index in ("created_at", "updated_at"):
            assert await redis.zrange(f"swm_idx:date:{index}", 0, -1, withscores=True) == [(b"kem_1", second)]
        # Whatever has no time to live is not evicted.
        assert 0 < await redis.ttl("swm_kem:kem_1") <= 60
        assert await redis.ttl("swm_idx:meta:type:document") == -1
        assert (await redis.config_get("maxmemory-policy"))["maxmemory-policy"] == "volatile-lru"

        await cache.drop("kem_1")
        assert await redis.keys("*") == []
    await cache.close()


@pytest.mark.backends
async def test_an_eviction_cleans_the_indexes_and_is_told_once(redis_url: str, library: Library) -> None:
    cache, other = RedisCache(redis_url, INDEXED, ttl_s=0.2), RedisCache(redis_url, INDEXED)
    await cache.open()
    await other.open()
    await cache.put(a_kem(library, metadata={"type": "a"}))
    told: list[str] = []

    async def is_told() -> list[str]:
        told.extend([*await cache.take_evicted(), *await other.take_evicted()])
        return told

    await until(is_told)
    async with Redis.from_url(redis_url) as redis:
        assert await redis.keys("*") == []
    assert await is_told() == ["kem_1"]
    await cache.close()
    await other.close()


@pytest.mark.backends
async def test_what_was_evicted_while_nobody_listened_is_told_at_the_start(redis_url: str, library: Library) -> None:
    before = RedisCache(redis_url, INDEXED)
    await before.open()
    for number in (1, 2):
        await before.put(a_kem(library, f"kem_{number}", metadata={"type": "a"}))
    await before.close()
    async with Redis.from_url(redis_url) as redis:
        await redis.delete("swm_kem:kem_1")

    cache = RedisCache(redis_url, INDEXED)
    await cache.open()

    assert await until(cache.take_evicted) == ["kem_1"]
    assert await found(cache, metadata_filters={"type": "a"}) == ["kem_2"]
    await cache.close()


@pytest.mark.backends
async def test_what_redis_has_no_room_for_is_told_and_indexes_stay_whole(redis_url: str, library: Library) -> None:
    cache = RedisCache(redis_url, INDEXED)
    await cache.open()
    async with Redis.from_url(redis_url, decode_responses=True) as redis:
        used = (await redis.info("memory"))["used_memory"]
        await redis.config_set("maxmemory", used + 3_000_000)
        put = [f"kem_{number}" for number in range(300)]
        for kem_id in put:
            await cache.put(a_kem(library, kem_id, content="x" * 30_000, metadata={"type": "a"}))
        told: list[str] = []

        async def all_are_told() -> bool:
            told.extend(await cache.take_evicted())
            there = {str(key).removeprefix("swm_kem:") for key in await redis.keys("swm_kem:*")}
            return bool(told) and sorted([*told, *there]) == sorted(put)

        await until(all_are_told)
        indexed = set(map(str, await redis.smembers("swm_idx:meta:type:a")))
        assert indexed == set(put) - set(told)
        # To answer takes room, too.
        assert set(await found(cache, metadata_filters={"type": "a"})) <= indexed
    await cache.close()

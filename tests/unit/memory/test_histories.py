"""HistoryRepository in SQL or in Redis: one behaviour."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from redis.asyncio import Redis
from sqlalchemy import text

from benchmarks.servers.redis import PrivateRedis
from bus_schema.history import HistoryMessage, chat_key, subagent_key
from memory.errors import WrongRedis
from memory.history.histories import HistoryLimits, HistoryRepository, as_shown
from memory.history.redis_store import RedisStore
from memory.history.sql_store import SqlStore
from memory.history.store import KNOWN_FOR, BrokenHistory, HistoriesAway, HistoryStore, digest_of
from mindbus.sql.database import Database
from mindbus.testing.wait import until
from tests.clocks import Clock
from tests.history_kit import KEY, exchange, said

LIMITS = HistoryLimits(max_history=100)
_TWIN = "SELECT messages FROM histories WHERE key = :key"


class Place:
    """Where histories are kept, as whoever looks at it from outside has it."""

    def __init__(self, database: Database | None, redis_url: str | None, clock: Clock) -> None:
        self.database, self._redis_url, self.clock = database, redis_url, clock
        self.opened: list[HistoryStore] = []

    async def histories(self, limits: HistoryLimits = LIMITS, cache_bytes: int = 2**20) -> HistoryRepository:
        """As another instance has them."""
        store = self.store()
        await store.open()
        self.opened.append(store)
        return HistoryRepository(store, limits, cache_bytes)

    def store(self) -> HistoryStore:
        if self._redis_url is not None:
            return RedisStore(self._redis_url)
        assert self.database is not None
        return SqlStore(Database(self.database.url.render_as_string(hide_password=False), "history"), self.clock)

    async def get(self, key: str) -> str | None:
        """What `GET` gives, or the SQL twin."""
        if self._redis_url is not None:
            async with Redis.from_url(self._redis_url, decode_responses=True) as redis:
                return cast("str | None", await redis.get(key))
        assert self.database is not None
        async with self.database.reading() as session:
            return cast("str | None", await session.scalar(text(_TWIN), {"key": key}))

    async def put(self, key: str, value: str) -> None:
        """As another program might."""
        if self._redis_url is not None:
            async with Redis.from_url(self._redis_url) as redis:
                await redis.set(key, value)
            return
        assert self.database is not None
        chat_id = key.rsplit(":", 1)[1]
        async with self.database.transaction() as session:
            await session.execute(text("DELETE FROM histories WHERE key = :key"), {"key": key})
            insertion = (
                "INSERT INTO histories (key, chat_id, digest, messages) VALUES (:key, :chat, :digest, :messages)"
            )
            await session.execute(
                text(insertion), {"key": key, "chat": chat_id, "digest": digest_of(value.encode()), "messages": value}
            )


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.backends),
        pytest.param("redis", marks=pytest.mark.backends),
    ]
)
def where(request: pytest.FixtureRequest) -> tuple[Database | None, str | None]:
    """The database, or the URL of Redis."""
    if request.param == "redis":
        return None, request.getfixturevalue("redis_url")
    return Database(request.getfixturevalue(f"{request.param}_database_of")("history"), "history"), None


@pytest.fixture
async def place(where: tuple[Database | None, str | None]) -> AsyncIterator[Place]:
    database, redis_url = where
    found = Place(database, redis_url, Clock())
    yield found
    for store in found.opened:
        await store.close()
    if database is not None:
        await database.dispose()


def ids(messages: "tuple[HistoryMessage, ...]") -> list[str]:
    return [message.id for message in messages]


async def test_what_is_appended_lies_under_the_key_as_one_json_array(place: Place) -> None:
    histories = await place.histories()
    assert await place.get(KEY) is None

    await histories.append(KEY, [said("1", "Пользователя зовут Алия. Запомни.")])
    added = await histories.append(KEY, [said("2", "Запомнила.", role="assistant")])

    assert (ids(added.messages), added.length) == (["2"], 2)
    assert json.loads(await place.get(KEY) or "") == [
        {
            "role": "user",
            "content": "Пользователя зовут Алия. Запомни.",
            "id": "1",
            "timestamp": "2026-03-14T12:00:00Z",
        },
        {"role": "assistant", "content": "Запомнила.", "id": "2", "timestamp": "2026-03-14T12:00:00Z"},
    ]
    assert [message.as_stored() for message in await histories.whole(KEY)] == json.loads(await place.get(KEY) or "")


async def test_a_model_is_shown_neither_times_nor_ids(place: Place) -> None:
    histories = await place.histories()
    await histories.append(KEY, exchange(1, results=1))

    found = await histories.end(KEY, None)
    shown, length = found.messages, found.length

    assert length == 4
    assert [as_shown(message).model_dump(exclude_none=True) for message in shown][1:3] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": ({"id": "call-1-0", "type": "function", "function": {"name": "search", "arguments": "{}"}},),
        },
        {"role": "tool", "content": "said in 1-result-call-1-0", "tool_call_id": "call-1-0", "name": "search"},
    ]


async def test_the_first_load_finds_what_is_in_the_store(place: Place) -> None:
    await (await place.histories()).append(KEY, [said("1"), said("2")])

    fresh = await place.histories()

    assert len((await fresh.end(KEY, None)).messages) == 2
    assert (await (await place.histories()).append(KEY, [said("3")])).length == 3


async def test_no_instance_serves_what_another_has_changed(place: Place) -> None:
    one, other = await place.histories(), await place.histories()
    await one.append(KEY, [said("1")])
    assert len(await other.whole(KEY)) == 1

    await one.append(KEY, [said("2")])
    assert ids(await other.whole(KEY)) == ["1", "2"]

    await other.append(KEY, [said("3")])
    assert ids(await one.whole(KEY)) == ["1", "2", "3"]

    await other.clear(KEY)
    assert await one.whole(KEY) == ()
    assert (await one.append(KEY, [said("4")])).length == 1


async def test_a_message_is_added_once_however_often_it_comes(place: Place) -> None:
    one, other = await place.histories(), await place.histories()
    await one.append(KEY, [said("1"), said("2"), said("1")])

    again = await other.append(KEY, [said("1"), said("2"), said("3")])

    assert (ids(again.messages), again.length) == (["3"], 3)
    assert (await one.append(KEY, [said("2")])).length == 3
    assert ids(await one.whole(KEY)) == ["1", "2", "3"]


async def test_a_message_that_there_was_no_room_for_any_more_does_not_come_back(place: Place) -> None:
    histories = await place.histories(HistoryLimits(max_history=3))
    for number in range(5):
        await histories.append(KEY, [said(str(number))])

    again = await histories.append(KEY, [said("0"), said("1"), said("4"), said("5")])

    assert ids(again.messages) == ["5"]
    assert ids(await histories.whole(KEY)) == ["3", "4", "5"]


async def test_a_cleared_message_does_not_come_back_with_a_late_repetition(place: Place) -> None:
    histories = await place.histories()
    await histories.append(KEY, [said("1"), said("2")])

    assert await histories.clear(KEY) == 2

    assert await place.get(KEY) is None
    assert (await histories.append(KEY, [said("1"), said("3")])).length == 1


async def test_a_message_is_of_one_key_alone(place: Place) -> None:
    histories = await place.histories()
    await histories.append(KEY, [said("1")])
    await histories.clear(KEY)

    assert (await histories.append(chat_key(12345), [said("1")])).length == 1


async def test_many_writers_at_once_lose_nothing_and_keep_each_ones_order(place: Place) -> None:
    writers, each = 5, 5
    instances = [await place.histories() for _ in range(3)]

    async def write(writer: int) -> None:
        for number in range(each):
            message = said(f"{writer}-{number}")
            await instances[writer % 3].append(KEY, [message])
            # As whoever has not heard the answer.
            await instances[(writer + 1) % 3].append(KEY, [message])

    await asyncio.gather(*map(write, range(writers)))

    kept = ids(await instances[0].whole(KEY))
    assert len(kept) == writers * each
    for writer in range(writers):
        assert [one for one in kept if one.startswith(f"{writer}-")] == [f"{writer}-{n}" for n in range(each)]


async def test_an_append_is_there_as_a_whole_or_not_at_all(place: Place) -> None:
    one, other = await place.histories(), await place.histories()

    await asyncio.gather(*((one, other)[n % 2].append(KEY, exchange(n)) for n in range(10)))

    kept = ids(await one.whole(KEY))
    assert len(kept) == 50
    for start in range(0, 50, 5):
        number = kept[start].split("-")[0]
        assert kept[start : start + 5] == [message.id for message in exchange(int(number))]


async def test_integers_and_strings_name_the_same_chat(place: Place) -> None:
    histories = await place.histories()
    await histories.append(chat_key(12345), [said("1")])
    await histories.append(subagent_key("analytic", 12345), [said("2")])

    assert ids(await histories.whole(chat_key("12345"))) == ["1"]
    assert ids(await histories.whole(subagent_key("analytic", "12345"))) == ["2"]


async def test_an_array_that_was_written_before_messages_had_ids_is_gone_on_with(place: Place) -> None:
    await place.put(KEY, '[{"role": "user", "content": "Меня зовут Алия", "timestamp": 1761305174.5}]')
    histories = await place.histories()

    assert [message.content for message in (await histories.end(KEY, None)).messages] == ["Меня зовут Алия"]
    await histories.append(KEY, [said("1", "Запомнила.", role="assistant")])

    assert ids(await histories.whole(KEY)) == ["old-0", "1"]


@pytest.mark.parametrize("value", ['{"role": "user"}', "no JSON", '[{"role": "stranger", "content": "x"}]', "[1]"])
async def test_what_is_no_history_is_said_to_be_none_until_it_is_cleared(place: Place, value: str) -> None:
    await place.put(KEY, value)
    histories = await place.histories()

    with pytest.raises(BrokenHistory):
        await histories.end(KEY, None)
    with pytest.raises(BrokenHistory):
        await histories.append(KEY, [said("1")])
    assert [(one.key, one.length) for one in await histories.page(None, "", 10)] == [(KEY, None)]
    assert await place.get(KEY) == value

    await histories.clear(KEY)
    assert (await histories.append(KEY, [said("1")])).length == 1


async def test_histories_are_listed_in_the_order_of_their_keys(place: Place) -> None:
    histories = await place.histories()
    keys = [KEY, "subagent:b:2", "chat_history:anna", "chat_history:Boris", "subagent:critic:anna", "chat_history:1.2"]
    for number, key in enumerate(keys):
        await histories.append(key, [said(str(each)) for each in range(number + 1)])

    first = await histories.page(None, "", 4)
    rest = await histories.page(None, first[-1].key, 4)

    assert [one.key for one in (*first, *rest)] == sorted(keys)
    assert {one.key: one.length for one in (*first, *rest)} == {key: n + 1 for n, key in enumerate(keys)}
    assert [one.key for one in await histories.page("anna", "", 10)] == ["chat_history:anna", "subagent:critic:anna"]


async def test_a_forgotten_chat_leaves_nothing_under_any_of_its_keys(place: Place) -> None:
    histories = await place.histories()
    for key in ("chat_history:anna", "subagent:analytic:anna", "subagent:critic:anna", "chat_history:annabel"):
        await histories.append(key, [said("1"), said("2")])

    assert await histories.forget("anna") == {"histories": 3, "messages": 6}

    assert [one.key for one in await histories.page(None, "", 10)] == ["chat_history:annabel"]
    assert await histories.forget(None) == {"histories": 1, "messages": 2}
    assert await histories.forget(None) == {"histories": 0, "messages": 0}


async def test_a_history_larger_than_the_cache_is_read_from_the_store(place: Place) -> None:
    histories = await place.histories(cache_bytes=1000)
    await histories.append(KEY, [said("1", "short")])
    await histories.append(KEY, [said("2", "long" * 1000)])
    await histories.append(KEY, [said("3")])

    assert ids(await histories.whole(KEY)) == ["1", "2", "3"]


async def test_in_sql_a_dropped_message_is_known_for_a_day(tmp_path: Path) -> None:
    clock = Clock()
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'known.db'}", "history")
    store = SqlStore(database, clock)
    await store.open()
    histories = HistoryRepository(store, LIMITS)
    await histories.append(KEY, [said("1")])
    await histories.clear(KEY)

    clock.advance(seconds=KNOWN_FOR.total_seconds() - 1)
    await store.forget_old()
    assert (await histories.append(KEY, [said("1")])).length == 0
    clock.advance(seconds=2)
    await store.forget_old()
    assert (await histories.append(KEY, [said("1")])).length == 1
    await store.close()


async def test_what_is_no_text_in_redis_is_no_history_until_it_is_cleared(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as redis:
        await redis.sadd(KEY, "a member")
    histories = HistoryRepository(store := RedisStore(redis_url), LIMITS)

    with pytest.raises(BrokenHistory):
        await histories.append(KEY, [said("1")])
    assert [one.length for one in await histories.page("12345", "", 10)] == [None]
    await histories.clear(KEY)
    assert (await histories.append(KEY, [said("1")])).length == 1
    await store.close()


async def test_a_redis_that_is_full_keeps_what_it_had(redis_url: str) -> None:
    histories = HistoryRepository(store := RedisStore(redis_url), HistoryLimits(max_history=2))
    await histories.append(KEY, [said("1"), said("2")])
    async with Redis.from_url(redis_url) as redis:
        before = await redis.get(KEY)
        await redis.config_set("maxmemory", 1)

        with pytest.raises(HistoriesAway, match="maxmemory"):
            await histories.append(KEY, [said("3"), said("4")])
        assert (await redis.get(KEY), await redis.keys("history_gone:*")) == (before, [])
    await store.close()


async def test_keys_of_others_in_the_same_redis_are_no_histories(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as redis:
        await redis.mset({"subagent:Loud:1": "x", "chat_history:a b": "x", "swm_counter:chat_history:1": "x"})
    histories = HistoryRepository(store := RedisStore(redis_url), LIMITS)

    assert await histories.page(None, "", 10) == []
    assert await histories.forget(None) == {"histories": 0, "messages": 0}
    await store.close()


async def test_a_redis_that_would_evict_is_refused(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as redis:
        await redis.config_set("maxmemory-policy", "allkeys-lru")
    store = RedisStore(redis_url)

    with pytest.raises(WrongRedis, match="allkeys-lru, which may evict histories"):
        await store.open()
    await store.close()


@pytest.mark.slow
async def test_while_redis_is_away_nothing_is_half_written(own_redis: PrivateRedis) -> None:
    histories = HistoryRepository(store := RedisStore(own_redis.url), HistoryLimits(max_history=4))
    await store.open()
    await histories.append(KEY, [said(str(number)) for number in range(4)])
    await own_redis.kill()

    with pytest.raises(HistoriesAway, match="nothing is half written"):
        await histories.append(KEY, [said("4"), said("5")])
    # What is at hand may have changed meanwhile.
    with pytest.raises(HistoriesAway):
        await histories.end(KEY, None)

    await own_redis.start()

    async def is_back() -> bool:
        try:
            return (await histories.append(KEY, [said("4"), said("5")])).length == 4
        except HistoriesAway:
            return False

    await until(is_back)
    assert ids(await histories.whole(KEY)) == ["2", "3", "4", "5"]
    await store.close()

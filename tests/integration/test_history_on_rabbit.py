"""Histories on a real broker: the keys of spec 001 in either store, who may ask, what is told beside."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from benchmarks.servers.redis import PrivateRedis
from bus_schema.data import ClearData, DeleteUser
from bus_schema.dialogue import MessageKind, MessageReceived
from bus_schema.history import (
    Appended,
    AppendHistories,
    AppendHistory,
    ClearHistory,
    GetHistory,
    HistoryAddition,
    HistoryMessage,
    ListHistories,
    ShowHistory,
    chat_key,
    subagent_key,
)
from bus_schema.messages import Command
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import Client, connect
from mindbus.errors import ReplyError
from mindbus.testing.wait import until
from tests.command_line import Ended, Shell
from tests.fleets import fleet_of, settings_for
from tests.history_kit import KEY, exchange, said
from tests.installed import FLEET

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.backends)])
def redis_url_or_none(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("redis_url") if request.param == "redis" else None


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path, redis_url_or_none: str | None) -> FleetSettings:
    return settings_for(vhost_url, tmp_path, redis_url=redis_url_or_none)


@pytest.fixture
async def bus(settings: FleetSettings) -> AsyncIterator[Client]:
    async with fleet_of(FLEET["history"], settings=settings) as fleet:
        yield fleet.bus


async def append(bus: Client, key: str, *messages: HistoryMessage) -> int:
    return (await bus.request(AppendHistory(key=key, messages=messages))).length


async def kept(bus: Client, key: str) -> list[str]:
    return [message.id for message in (await bus.request(ShowHistory(key=key))).messages]


async def refusal_of(bus: Client, command: Command[Any]) -> ReplyError:
    with pytest.raises(ReplyError) as refused:
        await bus.request(command)
    return refused.value


async def typed(settings: FleetSettings, *arguments: str) -> Ended:
    """What somebody at a shell sees."""
    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})
    return await asyncio.to_thread(shell.run, *arguments)


async def break_value(settings: FleetSettings, key: str) -> None:
    """Another program writes something else under a key that has been written to."""
    if settings.redis_url is not None:
        async with Redis.from_url(settings.redis_url) as redis:
            await redis.set(key, "[1]")
        return
    with sqlite3.connect(settings.data_dir / "history.db") as database:
        database.execute("UPDATE histories SET messages = '[1]', digest = 'another' WHERE key = ?", (key,))


async def value_of(settings: FleetSettings, key: str) -> str:
    """What `redis-cli GET` prints, or sqlite3 of the row."""
    if settings.redis_url is not None:
        async with Redis.from_url(settings.redis_url, decode_responses=True) as redis:
            return str(await redis.get(key))
    with sqlite3.connect(settings.data_dir / "history.db") as database:
        return str(database.execute("SELECT messages FROM histories WHERE key = ?", (key,)).fetchone()[0])


async def test_the_talk_of_the_spec_lies_under_its_key_and_the_command_line_shows_it(
    bus: Client, settings: FleetSettings
) -> None:
    talk = ["Пользователя зовут Алия", "Я запомнил: Алия", "Как зовут пользователя?", "Вас зовут Алия"]
    for place in (0, 2):
        await append(bus, KEY, said(f"m{place}", talk[place]), said(f"m{place + 1}", talk[place + 1], "assistant"))

    array = json.loads(await value_of(settings, KEY))
    roles = ["user", "assistant"] * 2
    assert [(message["role"], message["content"]) for message in array] == list(zip(roles, talk, strict=True))
    shown = await typed(settings, "history", "show", KEY, "--json")
    assert json.loads(shown.stdout) == array
    assert "Я запомнил: Алия" in (await typed(settings, "history", "show", KEY)).stdout
    listed = await typed(settings, "history", "ls", "--chat", "12345", "--json")
    assert [(one["key"], one["length"]) for one in json.loads(listed.stdout)] == [(KEY, 4)]

    table = (await typed(settings, "history", "ls")).stdout.splitlines()
    assert [line.split()[:2] for line in table] == [["key", "messages"], [KEY, "4"]]

    assert (await typed(settings, "history", "clear", KEY)).returncode == 2
    assert (await typed(settings, "history", "clear", KEY, "--yes")).returncode == 0
    assert "nothing is kept" in (await typed(settings, "history", "show", KEY)).stdout
    wrong = await typed(settings, "history", "show", "nonsense", "--json")
    assert (wrong.returncode, json.loads(wrong.stdout)["code"]) == (2, "invalid")


async def test_windows_are_as_wide_as_the_spec_has_them(bus: Client) -> None:
    for key in (chat_key(1), subagent_key("analytic", 1)):
        for number in range(30):
            await append(bus, key, *exchange(number, results=2))

    chat = await bus.request(GetHistory(key=chat_key(1)))
    subagent = await bus.request(GetHistory(key=subagent_key("analytic", 1)))
    few = await bus.request(GetHistory(key=subagent_key("analytic", 1), context_window=7))

    assert [(len(found.messages), found.length) for found in (chat, subagent, few)] == [(10, 100), (50, 100), (6, 100)]
    assert [message.role for message in few.messages] == ["assistant", "user", "assistant", "tool", "tool", "assistant"]
    assert GetHistory.model_validate({"key": 1}).key == chat_key("1") == "chat_history:1"


async def test_of_many_additions_each_is_answered_on_its_own(bus: Client, settings: FleetSettings) -> None:
    keys = [chat_key(number) for number in (1, 2, 3)]
    await append(bus, keys[0], said("0"))
    await append(bus, keys[1], said("0"))
    await break_value(settings, keys[1])

    command = AppendHistories(additions=tuple(HistoryAddition(key=key, messages=(said("1"),)) for key in keys))
    replies = (await bus.request(command)).items
    repeated = (await bus.request(command)).items

    assert [(each.status, each.code) for each in replies] == [("ok", None), ("error", Code.CONFLICT), ("ok", None)]
    assert [Appended.model_validate(each.result).length for each in (replies[0], replies[2])] == [2, 1]
    assert [await kept(bus, key) for key in (keys[0], keys[2])] == [["0", "1"], ["1"]]
    assert [each.result and each.result["length"] for each in repeated] == [2, None, 1]


async def test_whoever_reads_finds_what_was_written_just_before(bus: Client) -> None:
    for number in range(20):
        await bus.send(AppendHistory(key=KEY, messages=(said(str(number)),)))

    assert await kept(bus, KEY) == [str(number) for number in range(20)]


async def test_an_agent_neither_writes_nor_reads_histories(bus: Client, settings: FleetSettings) -> None:
    commands: list[Command[Any]] = [
        AppendHistory(key=KEY, messages=(said("1"),)),
        GetHistory(key=KEY),
        ShowHistory(key=KEY),
        ListHistories(),
        ClearHistory(key=KEY),
        DeleteUser(user_id="anna"),
        ClearData(confirm=True),
    ]
    async with connect("agent.stranger", settings=settings) as stranger:
        for command in commands:
            with pytest.raises(ReplyError) as refused:
                await stranger.request(command, to="history")
            assert refused.value.code is Code.UNAUTHORIZED
    assert await kept(bus, KEY) == []


async def test_a_forgotten_user_leaves_neither_histories_nor_logs(bus: Client, settings: FleetSettings) -> None:
    for chat in ("anna", "annabel"):
        for key in (chat_key(chat), subagent_key("analytic", chat), subagent_key("critic", chat)):
            await append(bus, key, said("1", f"{chat} says"))
    logs = settings.session_logs
    await until(lambda: len(list(logs.glob("*"))) == 2)

    removed = await bus.request(DeleteUser(user_id="anna"), to="history")

    assert removed.counts == {"histories": 3, "messages": 3, "session_logs": 1}
    assert [file.name for file in logs.iterdir()] == ["memory_annabel.log"]
    page = await bus.request(ListHistories(limit=2))
    rest = await bus.request(ListHistories(limit=2, cursor=page.next_cursor))
    assert {one.key.rsplit(":", 1)[1] for one in (*page.items, *rest.items)} == {"annabel"}
    assert (await refusal_of(bus, ListHistories(cursor="nonsense"))).code is Code.INVALID
    assert (await bus.request(ClearData(confirm=True), to="history")).counts["histories"] == 3


async def test_what_a_user_says_begins_a_request_in_the_log_of_the_chat(bus: Client, settings: FleetSettings) -> None:
    await bus.publish(MessageReceived(user_id="12345", message_id="msg_1", kind=MessageKind.NATIVE, preview="Привет!)"))
    log = settings.session_logs / "memory_12345.log"
    await until(log.exists)
    await bus.request(GetHistory(key=KEY))
    await append(bus, KEY, said("1", "мой пароль: тайна"))

    await until(lambda: len(log.read_text().splitlines()) == 5)
    told = [line.split(" - ")[1] for line in log.read_text().splitlines()]
    assert told[1:4] == [
        'new request  text="Привет!)"',
        'history loaded  subagent="analytic"  messages=0  kept=0',
        'history is empty  subagent="analytic"',
    ]
    assert told[4] == 'task saved  subagent="analytic"  text="мой пароль: [redacted]"'


async def test_a_long_history_comes_whole(bus: Client) -> None:
    words = "слово " * 10_000
    await append(bus, KEY, *(said(str(number), words) for number in range(5)))

    shown = await bus.request(GetHistory(key=KEY))

    assert [message.content for message in shown.messages] == [words] * 5


async def test_while_redis_is_away_whoever_asks_hears_so_and_whoever_waits_is_served_after(
    vhost_url: str, tmp_path: Path, own_redis: PrivateRedis
) -> None:
    settings = settings_for(vhost_url, tmp_path, redis_url=own_redis.url, retry_rungs="200ms,1s,2s")
    async with fleet_of(FLEET["history"], settings=settings) as fleet:
        await append(fleet.bus, KEY, said("1"))
        await own_redis.kill()

        with pytest.raises(ReplyError, match="The Redis of the histories does not answer") as refused:
            await fleet.bus.request(AppendHistory(key=KEY, messages=(said("2"),)), timeout_s=4)
        assert refused.value.code is Code.UNAVAILABLE
        waiting = asyncio.create_task(append(fleet.bus, KEY, said("3")))
        await own_redis.start()

        await waiting
        assert await kept(fleet.bus, KEY) in (["1", "3"], ["1", "2", "3"])


async def test_another_instance_goes_on_where_one_has_ended(bus: Client, settings: FleetSettings) -> None:
    await append(bus, KEY, said("1"))
    async with fleet_of(FLEET["history"], settings=settings) as other:
        await append(other.bus, KEY, said("2"))

    assert await kept(bus, KEY) == ["1", "2"]

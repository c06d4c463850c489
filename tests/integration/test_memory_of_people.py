"""Memory as one writes it: messages in, facts and passages out; over the SDK and over HTTP."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from mcp.types import TextContent
from pydantic import TypeAdapter

from bus_schema.tasks import ListTasks
from config.settings import FleetSettings
from mindbus import Client, ReplyError
from mindbus.accounts import AccessRole, accounts_of
from mindbus.bus.connection import connect
from mindbus.sdk.memory import AddedMemory, MalformedMessage, Memory
from tests.brokers import Broker
from tests.gateways import Served, gateway_settings, mcp_client, serving
from tests.installed import FLEET
from tests.newcomer import ROOT, files_of

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(180)]
WORKERS = tuple(FLEET[name] for name in ("storage", "lsm", "context_manager", "task_manager"))
BUDGET = "The budget of Aurora is 300,000 dollars. Remind me tomorrow at 9 to call Boris."
TALK = [
    {"role": "user", "content": BUDGET, "time": "2026-03-10T09:00:00Z"},
    {"role": "assistant", "content": "Noted.", "time": "2026-03-10T09:00:05Z"},
]
LATER = [{"role": "user", "content": "The budget of Aurora is 350,000 dollars.", "time": "2026-03-12T09:00:00Z"}]


@pytest.fixture
def settings(broker: Broker, vhost_url: str, migrated_folder: Path) -> FleetSettings:
    return gateway_settings(broker, vhost_url, migrated_folder)


async def test_what_is_added_is_found_and_what_it_supersedes_is_history(settings: FleetSettings) -> None:
    async with serving(*WORKERS, settings=settings) as gateway:
        async with connect("user.anna", settings=settings) as bus:
            memory = Memory(bus)
            added = await memory.add(TALK, user="anna")
            again = await memory.add(TALK, user="anna")
            # The last messages of a conversation, of which one is known already.
            later = await memory.add([*TALK[1:], *LATER], user="anna")
            found = await memory.search("What is the budget of Aurora?", user="anna")
            newest = await memory.search("What is the budget of Aurora?", user="anna", newest_first=True)
            history = await memory.history(user="anna")
            tasks = await bus.request(ListTasks(user_id="anna"))
            with pytest.raises(ReplyError, match="unauthorized"):
                await memory.add("I am Boris.", user="boris")
        wanted = {"user": "anna", "query": "What is the budget of Aurora?", "newest_first": True}
        over_http = await gateway.ok("POST", "/api/memory/search", json=wanted)

    assert (added.new, again.new, later.new) == (2, 0, 1)
    assert [update.change for update in added.facts] == ["found"]
    assert again.facts == added.facts
    assert {update.change for update in later.facts} == {"found", "superseded"}
    assert "350,000" in found.facts[0].text
    assert any("300,000" in turn.content for turn in found.turns)
    assert [fact.superseded_by is not None for fact in history] == [False, True]
    assert tasks.items == (), "an old conversation gives nobody tasks"
    assert [turn.content for turn in newest.turns] == [LATER[0]["content"], TALK[1]["content"], BUDGET]
    assert [turn["content"] for turn in over_http["turns"]] == [turn.content for turn in newest.turns]
    assert over_http["facts"][0]["text"] == found.facts[0].text


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "there is none"),
        (["Hello."], "message 1 is of the type str"),
        ([{"role": "user", "content": "Hello.", "mood": 1}], "message 1 has mood"),
        ([{"role": "cook", "content": "Hello."}], "message 1: .*role"),
        ([{"role": "user", "content": "Hello.", "time": "2026-03-10 09:00"}], "message 1: .*time"),
        ([{"role": "user"}], "message 1: .*content"),
    ],
)
async def test_what_is_no_message_is_refused_with_the_reason(messages: list[object], problem: str, bus: Client) -> None:
    with pytest.raises(MalformedMessage, match=problem):
        await Memory(bus).add(messages, user="anna")  # type: ignore[arg-type]  # that is what is wrong


@pytest.fixture
def bus(tmp_path: Path) -> Client:
    return connect("user.anna", settings=FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path))


async def test_over_http_everybody_has_their_own(settings: FleetSettings) -> None:
    closed = settings.model_copy(update={"gateway_access": "token"})
    anna, boris = (
        {"Authorization": f"Bearer {accounts_of(closed).add(name, AccessRole.USER)}"} for name in ("anna", "boris")
    )
    async with serving(*WORKERS, settings=closed) as gateway:
        added = await gateway.ok("POST", "/api/memory/messages", headers=anna, json={"user": "anna", "messages": TALK})
        asked = {"query": "budget of Aurora"}
        hers = await gateway.ok("POST", "/api/memory/search", headers=anna, json=asked | {"user": "anna"})
        refused = [
            await gateway.no("POST", "/api/memory/search", headers=boris, json=asked | {"user": "anna"}),
            await gateway.no("POST", "/api/memory/messages", headers=boris, json={"user": "anna", "messages": TALK}),
        ]
        his = await gateway.ok("POST", "/api/memory/search", headers=boris, json=asked | {"user": "boris"})
        facts = await gateway.ok("GET", "/api/facts", headers=anna, params={"user": "anna", "superseded": True})

    assert (added["new"], [each["change"] for each in added["facts"]]) == (2, ["found"])
    assert "300,000" in hers["facts"][0]["text"]
    assert [each[:2] for each in refused] == [(403, "unauthorized")] * 2
    assert (his["facts"], his["turns"]) == ([], [])
    assert [each["text"] for each in facts["items"]] == [hers["facts"][0]["text"]]


async def test_without_the_reader_of_facts_what_was_said_is_kept_and_read_once_it_is_added_again(
    settings: FleetSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(*WORKERS[:2], settings=settings) as gateway:
        kept, told = await added_each_way(gateway, settings)
    async with serving(*WORKERS, settings=settings) as gateway:
        read, told_again = await added_each_way(gateway, settings)

    assert [(each.new, each.facts) for each in kept] == [(2, ())] * 2
    assert all("context_manager" in each.unread for each in kept)
    assert "facts of a conversation not read" in capsys.readouterr().err
    assert told.startswith("2 of 2 messages are new")
    assert "add the same messages, with their times or ids, again" in told
    assert [(each.new, len(each.facts), each.unread) for each in read] == [(0, 1, "")] * 2
    assert "Facts in them:\n- The budget of Aurora" in told_again


async def added_each_way(gateway: Served, settings: FleetSettings) -> tuple[list[AddedMemory], str]:
    """The outcome over the SDK and over HTTP, and what MCP's tool says."""
    async with connect("user.anna", settings=settings) as bus:
        by_sdk = await Memory(bus).add(TALK, user="anna")
    body = {"user": "boris", "messages": TALK}
    over_http = await gateway.ok("POST", "/api/memory/messages", json=body)
    async with mcp_client(gateway) as client:
        answer = await client.call_tool("conversation_add", {"messages": TALK})
    assert isinstance(answer.content[0], TextContent)
    return [by_sdk, TypeAdapter(AddedMemory).validate_python(over_http)], answer.content[0].text


async def test_the_program_of_the_guide(settings: FleetSettings, tmp_path: Path) -> None:
    program = tmp_path / "remember_people.py"
    program.write_text(files_of(ROOT / "docs" / "how-to" / "long-term-memory.md")[program.name], encoding="utf-8")
    async with serving(*WORKERS, settings=settings):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, program), env=settings.environment(), stdout=PIPE, stderr=PIPE
        )
        async with asyncio.timeout(60):
            out, err = await process.communicate()

    now, before = "The budget of Aurora is 350,000 dollars.", "The budget of Aurora is 300,000 dollars."
    assert (out.decode().splitlines(), err.decode()) == ([now, f"{now} ", f"{before} (superseded)"], "")

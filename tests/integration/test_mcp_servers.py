"""Tools of MCP servers, used by the assistant and by a sub-agent: servers made with the official SDK, as processes."""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.mcp_servers.files import InvalidMcpServers, parse_mcp_servers, servers_of_dialogue
from agents.mcp_servers.tools import McpTools
from agents.models.language_model import ToolCall, tool_call
from bus_schema.history import chat_key
from config.settings import FleetSettings
from mindbus import WorkerContext
from mindbus.redaction import MASK
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings
from tests.fleets import fleet_of
from tests.installed import FLEET
from tests.llm_server import LlmServer, Says
from tests.subagent_kit import called, delegates, told
from workers.dialogue.worker import DialogueWorker
from workers.subagent_file import FileSubagent

pytestmark = pytest.mark.rabbit
STORES = [FLEET[name] for name in ("storage", "history")]
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "mcp-servers.md"
_STARTED_WITHIN_S = 60
KEY = "wh-7f3a9c2e51"
SERVERS = """\
servers:
  warehouse:
    command: [{python}, -m, tests.mcp_tool_server]
    env: {{WAREHOUSE_KEY: "${{WAREHOUSE_KEY}}", PYTHONPATH: {root}}}
    tools: [stock, secret, letter, sleep, crash, no_such]
    dialogue: true
    timeout_s: 1
    max_result_chars: 200
    max_calls: 2
  remote:
    url: http://127.0.0.1:{port}/mcp
    headers: {{Authorization: "Bearer ${{WAREHOUSE_KEY}}"}}
    tools: ["*"]
  gone:
    url: http://127.0.0.1:1/mcp
    tools: ["*"]
    dialogue: true
  unset:
    url: http://127.0.0.1:1/mcp
    headers: {{Authorization: "${{NO_SUCH_VARIABLE}}"}}
    tools: ["*"]
    dialogue: true
"""
CLERK = """\
name: clerk
description: Knows the warehouse.
prompt: You answer with the tools.
mcp: [remote]
"""


@pytest.fixture
async def port() -> AsyncIterator[int]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.mcp_tool_server", str(port))

    async def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await until(listens, _STARTED_WITHIN_S)
        yield port
    finally:
        process.kill()
        await process.wait()


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> FleetSettings:
    own = tmp_path / "own"
    (own / "subagents").mkdir(parents=True)
    root = Path(__file__).parents[2]
    (own / "mcp.yaml").write_text(SERVERS.format(python=sys.executable, root=root, port=port))
    (own / "subagents" / "clerk.yaml").write_text(CLERK)
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(own))
    monkeypatch.setenv("WAREHOUSE_KEY", KEY)
    return dialogue_settings(vhost_url, tmp_path)


def results(model: LlmServer) -> list[str]:
    """What the model was shown of its last calls."""
    said = model.requests[-1].body["messages"]
    last = max(place for place, each in enumerate(said) if each["role"] == "user")
    return [each["content"] for each in said[last:] if each["role"] == "tool"]


async def test_tools_of_mcp_servers(settings: FleetSettings, capfd: pytest.CaptureFixture[str]) -> None:
    script = [
        *(called("warehouse__stock", thing="chairs"), Says("28 chairs.")),
        *(called("warehouse__secret"), Says("It is a secret.")),
        *(called("warehouse__letter"), Says("A letter.")),
        *(called("warehouse__sleep"), Says("Too slow.")),
        *(called("warehouse__stock", thing="1"), called("warehouse__stock", thing="2")),
        *(called("warehouse__stock", thing="3"), Says("Enough.")),
        *(called("warehouse__crash"), Says("It crashed.")),
        *(called("warehouse__stock", thing="tables"), Says("28 tables.")),
        *(
            delegates("Which header?", to="clerk"),
            called("remote__headers"),
            Says("A header."),
            Says("The clerk saw it."),
        ),
    ]
    async with LlmServer(*script) as model:
        own = {"llm_base_url": model.base_url, "llm_model": "small"}
        settings = settings.model_copy(update=own)
        async with fleet_of(*STORES, Clerk, ClerksDialogue, settings=settings) as fleet:
            team, dialogue = Runtime(fleet), fleet[DialogueWorker]
            sub = fleet[FileSubagent]
            await until(lambda: offered(dialogue) and not sub.health_note, _STARTED_WITHIN_S)
            await used_with_limits(team, model)
            await away_and_back(team, model, dialogue)
            await team.say("anna", "Let the clerk look at the header.")
            assert [each.content for each in await told(team, "subagent:clerk:anna")][-2:] == [
                f"authorised by Bearer {MASK}",
                "A header.",
            ]
            await no_secret_is_kept(team)
    assert KEY not in "".join(capfd.readouterr())


async def used_with_limits(team: Runtime, model: LlmServer) -> None:
    await team.say("anna", "How many chairs have we?")
    assert results(model) == ["There are 28 of chairs."]
    tools = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert "warehouse__stock" in tools
    assert "warehouse__headers" not in tools  # not among those allowed
    assert not [name for name in tools if name.startswith("remote")]  # the clerk's
    await team.say("anna", "And the key?")
    assert results(model) == [f"the key is {MASK}"]
    await team.say("anna", "Read me the letter.")
    (letter,) = results(model)
    assert letter.endswith("… [cut off; 25036 characters in all]")
    assert "</material>" not in letter
    await team.say("anna", "Sleep a little.")
    assert results(model) == ["sleep took longer than 1 s; go on without it"]
    await team.say("anna", "Count thrice.")
    assert results(model)[2] == "warehouse has been called 2 times, no more for this answer"


async def away_and_back(team: Runtime, model: LlmServer, dialogue: DialogueWorker) -> None:
    """A server that dies does no harm, is named where a user looks, and is started again."""
    answer = await team.say("anna", "Crash, please.")
    assert answer.response == "It crashed."
    assert "Connection closed" in results(model)[0]
    await until(lambda: "MCP server warehouse: it has no tool no_such" in dialogue.health_note, _STARTED_WITHIN_S)
    assert "MCP server gone: " in dialogue.health_note
    assert "MCP server unset: the environment variable NO_SUCH_VARIABLE is not set" in dialogue.health_note
    await team.say("anna", "How many tables?")
    assert results(model) == ["There are 28 of tables."]


async def no_secret_is_kept(team: Runtime) -> None:
    kept = str(await told(team, chat_key("anna")))
    assert "the key is" in kept
    assert KEY not in kept


class Clerk(FileSubagent):
    name = "subagent-clerk"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context, "clerk")


class ClerksDialogue(DialogueWorker):
    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context, known_subagents={"clerk": "Knows the warehouse."})


def offered(dialogue: DialogueWorker) -> bool:
    return "warehouse: it has no tool no_such" in dialogue.health_note and "unset" in dialogue.health_note


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("servers: {a: {tools: [x]}}", "needs either a command or a url"),
        ("servers: {a: {url: 'ftp://x', tools: [x]}}", "url"),
        ("servers: {a: {url: 'http://x'}}", "tools: is missing"),
        ("servers: {A b: {url: 'http://x', tools: [x]}}", "must match"),
        ("servers: {a: {command: [x], headers: {A: b}, tools: [x]}}", "headers to a url"),
    ],
)
def test_a_broken_file_says_what_is_wrong(file: str, problem: str) -> None:
    with pytest.raises(InvalidMcpServers, match=problem):
        parse_mcp_servers(file.encode(), "mcp.yaml")


async def test_the_files_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL))
    (tmp_path / "my-config").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content.replace("[python,", f"[{sys.executable},"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", "my-config")
    tools = McpTools(servers_of_dialogue())
    await tools.start()
    try:
        await until(lambda: bool(tools.for_answer().tools), _STARTED_WITHIN_S)
        calls = tools.for_answer()
        assert await calls.result(tool_call("warehouse__stock", thing="chairs")) == "There are 28 of chairs."
        assert "no JSON" in await calls.result(ToolCall(id="c", name="warehouse__stock", arguments="{"))
    finally:
        await tools.stop()


async def test_a_server_that_refuses_a_call_stays_connected() -> None:
    served = f"servers: {{warehouse: {{command: [{sys.executable}, -m, tests.mcp_tool_server], tools: ['*']}}}}"
    tools = McpTools(parse_mcp_servers(served.encode(), "mcp.yaml").servers)
    await tools.start()
    try:
        await until(lambda: bool(tools.for_answer().tools), _STARTED_WITHIN_S)
        calls = tools.for_answer()
        before = await calls.result(tool_call("warehouse__process"))

        assert "name one of red, blue" in await calls.result(tool_call("warehouse__refuse"))
        assert await calls.result(tool_call("warehouse__process")) == before
    finally:
        await tools.stop()

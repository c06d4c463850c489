"""MCP, asked by the official client over HTTP and over standard input and output: everything there is to do with it."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from config.settings import FleetSettings
from mindbus.accounts import AccessRole, accounts_of
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.gateways import Served, gateway_settings, mcp_client, serving
from tests.installed import FLEET
from tests.llm_server import LlmServer, Stalls
from workers.dialogue.worker import DialogueWorker

pytestmark = pytest.mark.rabbit
WORKERS = ("storage", "history", "glm", "lsm", "swm", "orchestrator", "task_manager", "context_manager", "researcher")
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "mcp.md"
CARD = """\
name: look-up
description: Finds out, then asks whether that is enough.
parameters:
  depth: {type: string, choices: [short, long], default: short, description: How far to go.}
steps:
  - {id: notes, role: researcher, produces: research_report, instructions: Find out.}
  - {id: enough, approve: Is this enough?, inputs: [notes]}
result: notes
"""


@pytest.fixture
def settings(
    broker: Broker, vhost_url: str, migrated_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FleetSettings:
    cards = tmp_path / "own" / "cards"
    cards.mkdir(parents=True)
    (cards / "look-up.yaml").write_text(CARD)
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(cards.parent))
    return gateway_settings(broker, vhost_url, migrated_folder, gateway_access="token")


@pytest.fixture
async def gateway(settings: FleetSettings) -> AsyncIterator[Served]:
    async with serving(*(FLEET[name] for name in WORKERS), DialogueWorker, settings=settings) as served:
        yield served


async def done(client: Client, tool: str, /, **arguments: Any) -> Any:
    """What a tool returns: a list or a text stands alone."""
    answer = await client.call_tool(tool, arguments)
    assert isinstance(answer, CallToolResult)
    assert not answer.is_error, answer.content
    result = answer.structured_content or {}
    return result["result"] if result.keys() == {"result"} else result


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert isinstance(answer, CallToolResult)
    assert answer.is_error, answer.structured_content
    assert isinstance(answer.content[0], TextContent)
    return answer.content[0].text


async def test_every_tool_over_http(gateway: Served, settings: FleetSettings) -> None:
    token = accounts_of(settings).add("anna", AccessRole.USER)
    async with mcp_client(gateway, token) as anna:
        tools = {tool.name for tool in (await anna.list_tools()).tools}
        used: set[str] = set()

        async def use(tool: str, /, **arguments: Any) -> Any:
            used.add(tool)
            return await done(anna, tool, **arguments)

        await _use_memory(use)
        await _use_conversations(use)
        await _use_tasks(use)
        artifact = await _use_artifacts(use)
        await _use_runs(anna, use)
        await _use_commands(use)
        # Those of the cards that come with MindBus need roles that are not here.
        assert tools - used == {"run_article", "run_due-diligence", "run_review"}
        resource = (await anna.read_resource(f"mindbus://artifacts/{artifact}")).contents[0]
        assert resource.model_dump()["text"] == "# Wind"
        prompts = {prompt.name for prompt in (await anna.list_prompts()).prompts}
        assert prompts == {"plan_my_day", "remember_this"}


async def _use_memory(use: Any) -> None:
    unit = await use("memory_add", text="Apollo ships in March.", metadata={"project_id": "apollo"})
    assert unit["visibility"] == "private"
    found = await use("memory_search", query="when does Apollo ship", filter="metadata.project_id=apollo")
    assert [each["id"] for each in found["items"]] == [unit["id"]]
    budgets = [(await use("memory_add", text=f"Apollo's budget is {number} million."))["id"] for number in (2, 3)]
    older = next(each for each in (await use("memory_search", query="budget"))["items"] if each["id"] == budgets[0])
    assert older["contradicts"] == [{"kem_id": budgets[1], "is_newer": True}]
    for budget in budgets:
        await use("memory_delete", id=budget)
    await use("memory_update", id=unit["id"], text="Apollo ships in May.")
    assert (await use("memory_get", id=unit["id"]))["text"] == "Apollo ships in May."
    await use("memory_delete", id=unit["id"])
    assert (await use("memory_search", query="Apollo"))["items"] == []


async def _use_conversations(use: Any) -> None:
    said = {"role": "user", "content": "The code of the door is 4711.", "time": "2026-03-09T08:00:00Z", "id": "msg_d"}
    added = await use("conversation_add", messages=[said])
    assert added.startswith("1 of 1")
    assert "Facts in them:\n- The code of the door is 4711" in added
    assert (await use("conversation_add", messages=[said])).startswith("0 of 1")
    found = await use("conversation_search", query="code of the door")
    assert found["passages"][0]["turns"][0]["text"] == said["content"]
    (episode,) = (await use("episode_list"))["items"]
    assert [turn["text"] for turn in await use("episode_read", id=episode["id"])] == [said["content"]]
    await use("episode_pin", id=episode["id"])
    later = said | {"content": "The code of the door is 5200 now.", "time": "2026-03-12T08:00:00Z", "id": "msg_e"}
    await use("conversation_add", messages=[later])
    found = await use("conversation_search", query="code of the door", newest_first=True)
    assert [turn["text"] for each in found["passages"] for turn in each["turns"]] == [later["content"], said["content"]]
    assert await use("ask_assistant", message="Hello!")


async def _use_tasks(use: Any) -> None:
    task = await use("task_add", text="Call Maria", when="2026-12-01T15:00:00Z")
    await use("task_update", task_id=task["task_id"], id=task["task_id"], text="Call Maria back")
    assert [each["text"] for each in (await use("task_list"))["items"]] == ["Call Maria back"]
    assert (await use("task_complete", id=task["task_id"]))["status"] == "done"
    other = await use("task_add", text="Buy a lamp")
    assert (await use("task_cancel", id=other["task_id"]))["status"] == "cancelled"


async def _use_artifacts(use: Any) -> str:
    put = await use("artifact_put", text="# Wind", type="notes", trace="t1")
    assert await use("artifact_read", id=put["id"]) == "# Wind"
    assert [each["id"] for each in (await use("artifact_list", trace="t1"))["items"]] == [put["id"]]
    assert [each["id"] for each in (await use("artifact_lineage", id=put["id"]))["nodes"]] == [put["id"]]
    return str(put["id"])


async def _use_runs(anna: Client, use: Any) -> None:
    steps_done: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        steps_done.append(progress)

    arguments = {"brief": "# Wind\n\nWhere it comes from.", "depth": "long", "wait_s": 60}
    started = await anna.call_tool("run_look-up", arguments, progress_callback=hear)
    await use("run_look-up", brief="# Rain", depth="short")
    assert isinstance(started, CallToolResult)
    run: dict[str, Any] = started.structured_content or {}
    assert (run["status"], steps_done) == ("running", [0, 1])
    assert [step["status"] for step in run["steps"]] == ["completed", "waiting"]
    await use("process_answer", run_id=run["run_id"], step="enough", answer="approve")
    over = await use("process_status", run_id=run["run_id"], wait_s=60)
    assert (over["status"], over["result"]) == ("completed", run["steps"][0]["artifact_id"])
    other = next(each for each in await use("process_list") if each["run_id"] != run["run_id"])
    assert (await use("process_cancel", run_id=other["run_id"]))["status"] == "cancelled"


async def _use_commands(use: Any) -> None:
    names = [each["name"] for each in await use("command_list", domain="swm")]
    assert "swm.increment_counter" in names
    fields = (await use("command_schema", name="swm.increment_counter"))["properties"]
    assert {"name", "operation_id"} <= fields.keys()
    data = {"name": "visits", "operation_id": "op-1"}
    assert (await use("command_send", name="swm.increment_counter", data=data))["value"] == 1


async def test_what_is_wrong_is_told(gateway: Served, settings: FleetSettings) -> None:
    accounts = accounts_of(settings)
    async with mcp_client(gateway, accounts.add("anna", AccessRole.USER)) as anna:
        assert "no command 'no.such'" in await refused(anna, "command_send", name="no.such", data={})
        assert "name: Field required" in await refused(anna, "command_send", name="swm.get_counter", data={})
        assert "brief" in await refused(anna, "run_look-up", brief="")
        assert "depth" in await refused(anna, "run_look-up", brief="# Wind", depth="endless")
    async with mcp_client(gateway, accounts.add("scout", AccessRole.AGENT)) as agent:
        assert "agent.scout is not a person" in await refused(agent, "task_list")


async def test_a_stranger_sees_nothing(gateway: Served, settings: FleetSettings) -> None:
    accounts = accounts_of(settings)
    tokens = {name: accounts.add(name, AccessRole.USER) for name in ("anna", "boris")}
    async with mcp_client(gateway, tokens["anna"]) as anna:
        unit = await done(anna, "memory_add", text="My salary is 310000.")
        art = await done(anna, "artifact_put", text="310000", type="notes")
        run = await done(anna, "run_look-up", brief="# 310000")
        await done(anna, "conversation_add", messages=[{"role": "user", "content": "My salary is 310000."}])
        task = await done(anna, "task_add", text="Ask for 310000")
        (episode,) = (await done(anna, "episode_list"))["items"]
    ids = {
        "memory_get": unit["id"],
        "memory_delete": unit["id"],
        "artifact_read": art["id"],
        "artifact_lineage": art["id"],
        "episode_read": episode["id"],
        "episode_pin": episode["id"],
        "task_complete": task["task_id"],
        "task_cancel": task["task_id"],
    }
    async with mcp_client(gateway, tokens["boris"]) as boris:
        for tool, id_ in ids.items():
            await refused(boris, tool, id=id_)
        for tool in ("process_status", "process_cancel"):
            await refused(boris, tool, run_id=run["run_id"])
        await refused(boris, "process_answer", run_id=run["run_id"], step="enough", answer="approve")
        await refused(boris, "command_send", name="storage.collect_garbage", data={})
        lists = [await done(boris, tool) for tool in ("task_list", "episode_list", "artifact_list", "process_list")]
        found = [await done(boris, tool, query="salary") for tool in ("memory_search", "conversation_search")]
        everything = json.dumps([lists, found])
        assert "310000" not in everything
        assert "anna" not in everything


async def test_a_session_is_its_accounts_alone(gateway: Served, settings: FleetSettings) -> None:
    accounts = accounts_of(settings)
    anna, boris = (accounts.add(name, AccessRole.USER) for name in ("anna", "boris"))
    begin = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "hand", "version": "1"},
        },
    }
    headers = {"Accept": "application/json, text/event-stream"}

    async def post(message: Any, token: str | None, session: str = "") -> httpx.Response:
        signed = {"Authorization": f"Bearer {token}"} if token else {}
        own = {"Mcp-Session-Id": session} if session else {}
        return await gateway.http.post("/mcp", json=message, headers=headers | signed | own)

    assert [(await post(begin, token)).status_code for token in (None, "no such token")] == [401, 401]
    opened = await post(begin, anna)
    session = opened.headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert [(await post(listing, token, session)).status_code for token in (boris, anna)] == [404, 200]
    foreign = await gateway.http.post("/mcp", json=begin, headers={**headers, "Origin": "https://evil.example"})
    assert foreign.status_code == 403


async def test_an_answer_that_is_no_longer_wanted_is_cancelled(
    broker: Broker, vhost_url: str, migrated_folder: Path
) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with LlmServer(Stalls(after_pieces=3)) as model:
        access = {"gateway_access": "token", "llm_base_url": model.base_url, "llm_model": "small"}
        settings = gateway_settings(broker, vhost_url, migrated_folder, **access)
        token = accounts_of(settings).add("anna", AccessRole.USER)
        workers = (FLEET["storage"], FLEET["history"], FLEET["dialogue"])
        async with serving(*workers, settings=settings) as gateway, mcp_client(gateway, token) as anna:
            question = {"message": "How late are we?"}
            asking = asyncio.create_task(anna.call_tool("ask_assistant", question, progress_callback=hear))
            await until(lambda: bool(heard))
            asking.cancel()

            async def is_kept_as_far_as_it_came() -> bool:
                own = {"Authorization": f"Bearer {token}"}
                page = await gateway.ok("GET", "/api/dialogues/anna/messages", headers=own)
                return "assistant" in {item["role"] for item in page["items"]}

            await until(is_kept_as_far_as_it_came)
        assert len(model.requests) == 1


async def test_over_standard_input_and_output_as_the_guide_says(gateway: Served, settings: FleetSettings) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
    environment |= {"MINDBUS_AMQP_URL": settings.amqp_url or "", "MINDBUS_DATA_DIR": str(settings.data_dir)}
    configuration = next(json.loads(block) for block in re.findall(r"```json\n(.+?)```", GUIDE.read_text(), re.S))
    server = configuration["mcpServers"]["mindbus"]
    program = str(Path(sys.executable).parent / server["command"])
    command = StdioServerParameters(command=program, args=server["args"], env=environment)
    async with Client(stdio_client(command)) as anna:
        await done(anna, "memory_add", text="The office closes at six.")
        assert (await done(anna, "memory_search", query="office"))["items"][0]["owner"] == "user.anna"
    silent = await asyncio.create_subprocess_exec(
        *(command.command, "mcp"),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    assert (await silent.communicate())[0] == b""
    assert silent.returncode == 0

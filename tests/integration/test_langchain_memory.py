"""LangChain's retriever and tools over memory; its own standard tests of both, in an environment of their own."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from bus_schema.glm import StoreKem
from bus_schema.kem import KemDraft
from bus_schema.lsm import RecordExchange, SaidMessage
from config.settings import FleetSettings
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.langchain_history import MindBusChatMessageHistory
from mindbus.integrations.langchain_memory import MindBusRetriever, MindBusToolkit
from mindbus.integrations.langgraph_store import MindBusStore
from mindbus.sdk.kem_filters import MalformedFilter
from tests.fleets import bus_thread, fleet_of, settings_for
from tests.installed import FLEET
from tests.newcomer import python_with

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(120)]

REPORT = "The report is due on Friday."
SUITES = """
import pytest
from bus_schema.glm import StoreKem
from bus_schema.kem import KemDraft
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.langchain_memory import MindBusRetriever, MindBusToolkit

bus = BusThread("user.anna")

@pytest.fixture(scope="session", autouse=True)
def connected():
    with bus:
        for number in range(4):
            bus.call(bus.client.request(StoreKem(kem=KemDraft(content=f"Report {number} is due on Friday."))))
        yield

class Search:
    @property
    def tool_constructor(self):
        return next(tool for tool in MindBusToolkit(bus=bus).get_tools() if tool.name == self.name)
    name = "memory_search"
    tool_invoke_params_example = {"query": "When is the report due?", "limit": 2}

class Add(Search):
    name = "memory_add"
    tool_invoke_params_example = {"text": "Boris never eats meat.", "metadata": {"about": "boris"}}

class Conversations(Search):
    name = "conversation_search"
    tool_invoke_params_example = {"query": "What did we decide?"}

class TestSearch(Search, ToolsUnitTests): ...
class TestSearchOnFleet(Search, ToolsIntegrationTests): ...
class TestAdd(Add, ToolsUnitTests): ...
class TestAddOnFleet(Add, ToolsIntegrationTests): ...
class TestConversations(Conversations, ToolsUnitTests): ...
class TestConversationsOnFleet(Conversations, ToolsIntegrationTests): ...

class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self

def test_an_agent_of_langchains_uses_the_tools():
    call = {"name": "memory_search", "args": {"query": "When is report 3 due?"}, "id": "1", "type": "tool_call"}
    model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("On Friday.")]))
    agent = create_agent(model, MindBusToolkit(bus=bus).get_tools())
    _, _, found, said = agent.invoke({"messages": [("user", "When is report 3 due?")]})["messages"]
    assert (found.status, said.text) == ("success", "On Friday.")
    assert "is due on Friday." in found.text

class TestRetriever(RetrieversIntegrationTests):
    retriever_constructor = MindBusRetriever
    retriever_constructor_params = {"bus": bus}
    retriever_query_example = "When is the report due?"
"""


@pytest.fixture
def settings(vhost_url: str, migrated_folder: Path) -> FleetSettings:
    return settings_for(vhost_url, migrated_folder)


@pytest.fixture
async def bus(settings: FleetSettings) -> AsyncIterator[BusThread]:
    async with fleet_of(FLEET["glm"], FLEET["lsm"], settings=settings), bus_thread("user.anna", settings) as thread:
        yield thread


async def keep(bus: BusThread, text: str, **metadata: Any) -> str:
    draft = KemDraft(content=text, metadata=metadata, visibility="private")
    return (await bus.acall(bus.client.request(StoreKem(kem=draft)))).id


def tool_of(bus: BusThread, name: str) -> BaseTool:
    return next(tool for tool in MindBusToolkit(bus=bus).get_tools() if tool.name == name)


async def called(tool: BaseTool, **args: Any) -> ToolMessage:
    answer = await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name, "args": args})
    assert isinstance(answer, ToolMessage)
    return answer


async def test_a_graph_calls_the_tools_by_its_tool_node(bus: BusThread) -> None:
    await keep(bus, REPORT)
    call = {"name": "memory_search", "args": {"query": "When is the report due?"}, "id": "1", "type": "tool_call"}
    nodes = StateGraph(MessagesState).add_node("tools", ToolNode(MindBusToolkit(bus=bus).get_tools()))
    graph = nodes.add_edge(START, "tools").compile()

    state = await graph.ainvoke({"messages": [AIMessage("", tool_calls=[call])]})

    assert REPORT in state["messages"][-1].text


async def test_the_nearest_units_are_documents(bus: BusThread) -> None:
    report = await keep(bus, REPORT, project_id="apollo")
    await keep(bus, "Boris never eats meat.")
    retriever = MindBusRetriever(bus=bus, k=1)

    (found,) = await retriever.ainvoke("When must the report be ready?")
    assert await asyncio.to_thread(retriever.invoke, "When must the report be ready?") == [found]
    assert (found.id, found.page_content) == (report, REPORT)
    assert (found.metadata["project_id"], found.metadata["kem_owner"]) == ("apollo", "user.anna")
    assert found.metadata["kem_score"] > 0
    assert len(await retriever.ainvoke("report " * 800, k=2)) == 2
    assert await retriever.ainvoke("  ") == []


async def test_a_filter_narrows_a_search(bus: BusThread) -> None:
    for project in ("apollo", "gemini"):
        await keep(bus, REPORT, project_id=project)
    retriever = MindBusRetriever(bus=bus, filter="metadata.project_id=apollo")

    async def projects(**options: Any) -> list[str]:
        return [each.metadata["project_id"] for each in await retriever.ainvoke("report", **options)]

    assert await projects() == ["apollo"]
    assert await projects(filter="metadata.project_id=gemini OR metadata.project_id=mercury") == ["gemini"]
    assert len(await projects(filter="")) == 2
    with pytest.raises(MalformedFilter):
        await projects(filter="metadata.project_id=(")


async def test_neither_what_is_superseded_nor_records_of_stores_are_found(bus: BusThread) -> None:
    await MindBusStore(bus).aput(("work",), "report", {"text": REPORT})
    await MindBusChatMessageHistory(bus, "s1").aadd_messages([HumanMessage(REPORT)])
    await keep(bus, "The report is due on Monday.", status="superseded")
    report = await keep(bus, REPORT)

    assert [each.id for each in await MindBusRetriever(bus=bus).ainvoke("When is the report due?")] == [report]


async def test_a_model_finds_what_a_model_has_added(bus: BusThread) -> None:
    added = await called(tool_of(bus, "memory_add"), text=REPORT, metadata={"project_id": "apollo"})
    await called(tool_of(bus, "memory_add"), text="Boris never eats meat.")
    found = await called(tool_of(bus, "memory_search"), query="When is the report due?", limit=1)

    assert (added.status, added.artifact.visibility, added.content) == (
        "success",
        "private",
        f"{added.artifact.id} is stored, private",
    )
    assert [each.page_content for each in found.artifact] == [REPORT]
    (item,) = json.loads(str(found.content))["items"]
    assert (item["kem"]["id"], item["kem"]["content"]) == (added.artifact.id, REPORT)
    assert item["kem"]["metadata"] == {"project_id": "apollo"}


async def test_a_model_finds_what_was_said(bus: BusThread) -> None:
    noon = datetime(2026, 3, 10, 12, tzinfo=UTC)
    words = ("We take the blue tiles for the kitchen.", "The plumber comes on Tuesday.")
    said = [
        SaidMessage(role="user", content=text, time=noon + timedelta(minutes=number))
        for number, text in enumerate(words)
    ]
    await bus.acall(bus.client.request(RecordExchange(chat_id="anna", messages=tuple(said))))

    found = await called(tool_of(bus, "conversation_search"), query="Which tiles for the kitchen?")
    assert found.artifact.episodes
    turns = [turn for each in json.loads(str(found.content))["episodes"] for turn in each["turns"]]
    assert [turn["content"] for turn in turns] == list(words)

    found = await called(tool_of(bus, "conversation_search"), query="Which tiles for the kitchen?", newest_first=True)
    assert [turn.content for each in found.artifact.episodes for turn in each.turns] == list(words[::-1])


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("memory_search", {"query": "report", "filter": "metadata.x=("}, "filter"),
        ("memory_search", {"query": ""}, "query: String should have at least 1 character"),
        ("memory_add", {"text": "x" * 70_000}, "make it an artifact"),
        ("memory_add", {"text": "x", "metadata": {"a b": 1}}, "metadata"),
        ("conversation_search", {"query": " "}, "say what to look for"),
    ],
)
async def test_a_model_is_told_what_was_wrong(bus: BusThread, name: str, args: dict[str, Any], reason: str) -> None:
    answer = await called(tool_of(bus, name), **args)

    assert answer.status == "error"
    assert reason in str(answer.content)


async def test_an_agent_has_no_conversations(bus: BusThread, settings: FleetSettings) -> None:
    def names() -> list[str]:
        with BusThread("agent.clerk", settings=settings) as other:
            return [tool.name for tool in MindBusToolkit(bus=other).get_tools()]

    assert await asyncio.to_thread(names) == ["memory_search", "memory_add"]
    assert [tool.name for tool in MindBusToolkit(bus=bus).get_tools()] == [
        *await asyncio.to_thread(names),
        "conversation_search",
    ]


@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_langchains_standard_tests_pass(
    settings: FleetSettings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("langchain")
    python = await asyncio.to_thread(python_with, folder, "langgraph", "langchain>=1.0", "langchain-tests>=1.1")
    (folder / "test_suites.py").write_text(SUITES, encoding="utf-8")
    environment = {"MINDBUS_AMQP_URL": str(settings.amqp_url), "MINDBUS_DATA_DIR": str(settings.data_dir)}
    async with fleet_of(FLEET["glm"], FLEET["lsm"], settings=settings):
        process = await asyncio.create_subprocess_exec(
            *(python, "-m", "pytest", "-o", "asyncio_mode=auto", "--rootdir", folder, folder / "test_suites.py"),
            cwd=folder,
            env={"PATH": os.environ["PATH"], **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(180):
            out, _ = await process.communicate()

    assert process.returncode == 0, out.decode()
    # All of them: none is skipped, none is expected to fail.
    ended = re.search(r"=+ (\d+) passed in", out.decode())
    assert ended, out.decode()
    assert int(ended[1]) >= 39, (
        "six of a tool without a fleet and five with one, three tools; five of the retriever; one"
    )

"""Agents keep values under keys; a version tells who was faster."""

from typing import Any

import pytest

from bus_schema.agent_data import GetAgentData, PutAgentData
from storage_service.errors import AgentDatumConflict
from storage_service.records import AgentData
from tests.clocks import Clock
from tests.storage_kit import OpenDepot


@pytest.fixture
def agent_data(open_depot: OpenDepot) -> AgentData:
    return AgentData(open_depot().database, Clock())


async def put(agent_data: AgentData, key: str, value: Any, **options: Any) -> int:
    wanted = PutAgentData.model_validate(
        {"agent": "task_manager", "namespace": "tasks", "key": key, "value": value} | options
    )
    async with agent_data.database.at_hand():
        return await agent_data.put(wanted)


async def values(agent_data: AgentData, **wanted: Any) -> dict[str, tuple[Any, int]]:
    page = await agent_data.page(GetAgentData(**({"agent": "task_manager", "namespace": "tasks"} | wanted)))
    return {datum.key: (datum.value, datum.version) for datum in page.items}


async def test_a_value_is_replaced_version_by_version(agent_data: AgentData) -> None:
    assert await put(agent_data, "anna", {"дела": ["отчёт"]}) == 1
    assert await put(agent_data, "anna", {"дела": []}, expected_version=1) == 2
    assert await values(agent_data) == {"anna": ({"дела": []}, 2)}


async def test_who_has_read_an_older_version_is_told(agent_data: AgentData) -> None:
    await put(agent_data, "anna", 1)
    await put(agent_data, "anna", 2)
    with pytest.raises(AgentDatumConflict) as differs:
        await put(agent_data, "anna", 3, expected_version=1)
    assert differs.value.details == {"expected_version": 1, "version": 2}
    with pytest.raises(AgentDatumConflict):
        await put(agent_data, "anna", 3, expected_version=0)
    assert await values(agent_data) == {"anna": (2, 2)}


async def test_null_forgets_a_value(agent_data: AgentData) -> None:
    await put(agent_data, "anna", 1)
    assert await put(agent_data, "anna", None) == 0
    assert await put(agent_data, "nobody", None) == 0
    assert await values(agent_data) == {}
    assert await put(agent_data, "anna", 2, expected_version=0) == 1


async def test_agents_and_namespaces_keep_apart(agent_data: AgentData) -> None:
    await put(agent_data, "anna", 1)
    await put(agent_data, "anna", 2, namespace="settings")
    await put(agent_data, "anna", 3, agent="mood_watcher")
    assert await values(agent_data) == {"anna": (1, 1)}
    assert await values(agent_data, namespace="settings") == {"anna": (2, 1)}
    assert await values(agent_data, agent="mood_watcher", key="anna") == {"anna": (3, 1)}
    assert await values(agent_data, key="boris") == {}


async def test_a_namespace_comes_in_pages(agent_data: AgentData) -> None:
    for key in ("anna", "boris", "vera"):
        await put(agent_data, key, key)
    page = await agent_data.page(GetAgentData(agent="task_manager", namespace="tasks", limit=2))
    assert [datum.key for datum in page.items] == ["anna", "boris"]
    assert list(await values(agent_data, limit=2, cursor=page.next_cursor)) == ["vera"]

"""Following what sub-agents do for one chat: nothing is missed, nothing comes twice, whatever becomes of the client."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bus_schema.dialogue import conversation_trace
from bus_schema.subagent import SubagentCompletion, SubagentDelegation
from mindbus import Client
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.gateways import Frame, Served, gateway_settings, serving
from tests.installed import FLEET
from tests.integration.test_gateway_events import take

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
async def gateway(broker: Broker, vhost_url: str, tmp_path: Path) -> AsyncIterator[Served]:
    settings = gateway_settings(broker, vhost_url, tmp_path)
    async with serving(FLEET["storage"], FLEET["tracker"], settings=settings) as served:
        yield served


async def delegate(bus: Client, chat: str, *numbers: int) -> None:
    for number in numbers:
        place = {"chat_id": chat, "subagent": "analytic", "delegation_id": f"dlg_{number}", "time": NOW}
        for event in (
            SubagentDelegation(**place, position=0, task=f"задача {number}"),
            SubagentCompletion(**place, position=1, response=f"ответ {number}"),
        ):
            await bus.publish(event, trace=conversation_trace(chat))


def said(frames: list[Frame]) -> list[tuple[str, str]]:
    return [(frame.event, frame.data.get("task") or frame.data["response"]) for frame in frames]


async def recorded(gateway: Served, count: int) -> bool:
    page = await gateway.ok("GET", "/api/timeline", params={"topic": ["subagent"], "limit": 100})
    return len(page["items"]) >= count


async def test_a_client_that_comes_back_misses_nothing_and_hears_nothing_twice(gateway: Served) -> None:
    path = "/api/dialogues/12345/subagents"
    expected = [
        each
        for number in range(6)
        for each in (("subagent_delegation", f"задача {number}"), ("subagent_completion", f"ответ {number}"))
    ]
    async with gateway.stream("GET", path) as frames:
        await delegate(gateway.bus, "12345", 0, 1)
        await delegate(gateway.bus, "another", 100)
        heard = await take(frames, 3)
    await delegate(gateway.bus, "12345", 2, 3)
    await until(lambda: recorded(gateway, 10))
    async with gateway.stream("GET", path, headers={"Last-Event-ID": heard[-1].id or ""}) as frames:
        heard += await take(frames, 4)
    async with gateway.stream("GET", path, params={"cursor": heard[-1].id}) as frames:
        await delegate(gateway.bus, "12345", 4, 5)
        heard += await take(frames, 5)
    async with gateway.stream("GET", path, headers={"Last-Event-ID": "0"}) as frames:
        from_the_beginning = await take(frames, 12)

    assert said(heard) == said(from_the_beginning) == expected


async def test_what_cannot_be_followed_is_refused(gateway: Served) -> None:
    status, code, _ = await gateway.no("GET", "/api/dialogues/12345/subagents", headers={"Last-Event-ID": "999999"})

    assert (status, code) == (404, "not_found")

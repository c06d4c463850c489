"""A master with its sub-agents for tests, on a real broker; what the histories hold afterwards."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from agents.models.language_model import ToolCall
from bus_schema.history import HistoryMessage, ShowHistory, subagent_key
from config.settings import FleetSettings
from mindbus import Worker, WorkerContext
from tests.dialogue_kit import Runtime
from tests.fleets import fleet_of
from tests.installed import FLEET
from tests.llm_server import Says

CAST = ("storage", "history", "tracker", "subagent-analytic", "dialogue")


@asynccontextmanager
async def master(
    settings: FleetSettings, *names: str, more: tuple[Callable[[WorkerContext], Worker], ...] = ()
) -> AsyncIterator[Runtime]:
    """The whole of it, or the workers named, with others of the test's own."""
    async with fleet_of(*(FLEET[name] for name in names or CAST), *more, settings=settings) as fleet:
        yield Runtime(fleet)


async def told(team: Runtime, key: str) -> list[HistoryMessage]:
    """All that a history keeps."""
    return list((await team.bus.request(ShowHistory(key=key))).messages)


async def with_subagent(team: Runtime, chat_id: str, name: str = "analytic") -> list[tuple[str, str]]:
    """What was said with a sub-agent, by role."""
    return [(each.role, each.content or "") for each in await told(team, subagent_key(name, chat_id))]


def delegates(*tasks: str, to: str = "analytic", text: str = "") -> Says:
    """A model's answer in which it gives tasks."""
    calls = tuple(
        ToolCall(
            id=f"call_{number}", name=f"delegate_to_{to}", arguments=json.dumps({"task": task}, ensure_ascii=False)
        )
        for number, task in enumerate(tasks)
    )
    return Says(text, tool_calls=calls)


def called(name: str, call_id: str = "call_0", **arguments: Any) -> Says:
    """A model's answer in which it uses a tool."""
    return Says(tool_calls=(ToolCall(id=call_id, name=name, arguments=json.dumps(arguments, ensure_ascii=False)),))

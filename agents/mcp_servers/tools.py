"""Tools of MCP servers under names of their own, and their use for one answer, within its limits."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.mcp_servers.connection import ServerConnection
from agents.mcp_servers.files import McpServer
from agents.models.language_model import Tool, ToolCall
from agents.subagents.loop import BoundTool, ToolFailed
from mindbus.tasks import end

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME, _LONGEST_DESCRIPTION, _LONGEST_SCHEMA = 64, 1000, 20_000


class AnyArguments(BaseModel):
    """Arguments as the server's own schema has them, which checks them."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class _ServerTool:
    """A tool as models are shown it, with where it is called."""

    tool: Tool
    name: str
    connection: ServerConnection


class McpTools:
    """Connections to servers, opened with the worker, and the tools that they have now."""

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._connections = [ServerConnection(name, server) for name, server in servers.items()]
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to connect; nobody waits for a server."""
        self._running = [asyncio.create_task(each.run(), name=f"mcp {each.name}") for each in self._connections]

    async def stop(self) -> None:
        await end(*self._running)

    @property
    def note(self) -> str:
        """The servers that are away or have failed, with the reason; empty where all is well."""
        return "; ".join(f"MCP server {each.name}: {each.trouble}" for each in self._connections if each.trouble)

    def for_answer(self) -> "McpCalls":
        """The tools as they are now, to be used for one answer."""
        taken: dict[str, _ServerTool] = {}
        for connection in self._connections:
            for tool in connection.tools:
                shown = next(name for name in _names(connection.name, tool.name) if name not in taken)
                schema = tool.input_schema
                if len(json.dumps(schema)) > _LONGEST_SCHEMA:
                    schema = {"type": "object"}
                about = (tool.description or tool.name)[:_LONGEST_DESCRIPTION]
                offered = Tool(name=shown, description=about, parameters=dict(schema))
                taken[shown] = _ServerTool(offered, tool.name, connection)
        return McpCalls(taken)


def _names(server: str, tool: str) -> Iterator[str]:
    plain = _NOT_IN_A_NAME.sub("_", f"{server}__{tool}")
    yield plain[:_LONGEST_NAME]
    for number in count(2):
        yield f"{plain[: _LONGEST_NAME - 4]}_{number}"


class McpCalls:
    """The tools for one answer; each server may be called as often as its file says."""

    def __init__(self, tools: Mapping[str, _ServerTool]) -> None:
        self._tools = tools
        self._made = Counter[str]()

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    @property
    def tools(self) -> Sequence[Tool]:
        return [each.tool for each in self._tools.values()]

    @property
    def bound(self) -> Sequence[BoundTool]:
        """The tools for a sub-agent."""
        return [
            BoundTool(name, each.tool.description, AnyArguments, partial(self._use_bound, name), declared=each.tool)
            for name, each in self._tools.items()
        ]

    async def result(self, call: ToolCall) -> str:
        """Result of a call, in words for the model; a failure too."""
        try:
            arguments = json.loads(call.arguments or "{}")
            if not isinstance(arguments, dict):
                return f"The arguments of {call.name} are no JSON object; call it again."
            return await self._use(call.name, arguments)
        except ToolFailed as error:
            return str(error)
        except ValueError as error:
            return f"The arguments of {call.name} are no JSON ({error}); call it again."

    async def _use_bound(self, name: str, arguments: AnyArguments) -> str:
        return await self._use(name, arguments.model_extra or {})

    async def _use(self, name: str, arguments: dict[str, Any]) -> str:
        """Raises ToolFailed."""
        meant = self._tools[name]
        server = meant.connection.name
        self._made[server] += 1
        if self._made[server] > meant.connection.server.max_calls:
            raise ToolFailed(f"{server} has been called {self._made[server] - 1} times, no more for this answer")
        return await meant.connection.call(meant.name, arguments)

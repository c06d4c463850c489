"""MCP tools for all the rest: which commands there are, what they take, send one."""

from contextlib import nullcontext
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from bus_schema.catalogue import ASK_MODELS, commands_by_name, summary_of
from bus_schema.messages import Command
from mindbus.integrations.mcp.participant import ParticipantOf

CommandName = Annotated[str, Field(description="Such as storage.get_artifact; command_list lists them.")]


class CommandHead(BaseModel):
    """A command's name, and what it does."""

    name: str
    summary: str


class CommandTools:
    """Every command of the bus; whether it is answered is up to who may send it."""

    def __init__(self, participant_of: ParticipantOf) -> None:
        self._of = participant_of

    async def command_list(
        self, domain: Annotated[str, Field(description="Only commands of this domain, such as storage.")] = ""
    ) -> list[CommandHead]:
        """List the commands that the bus knows; use them for what no other tool does."""
        return [
            CommandHead(name=name, summary=summary_of(kind))
            for name, kind in commands_by_name().items()
            if name.startswith(f"{domain}." if domain else "")
        ]

    async def command_schema(self, name: CommandName) -> dict[str, Any]:
        """Show the JSON Schema of a command's fields."""
        return _command(name).model_json_schema()

    async def command_send(
        self,
        context: Context[Any, Any],
        name: CommandName,
        data: Annotated[dict[str, Any], Field(description="Its fields, as command_schema describes them.")],
        trace: Annotated[str | None, Field(description="Trace that it belongs to, such as run_0192….")] = None,
    ) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        participant, command = self._of(context), _command(name).model_validate(data)
        with participant.asking() if isinstance(command, ASK_MODELS) else nullcontext():
            answer: BaseModel = await participant.bus.request(command, trace=trace)
        return answer.model_dump(mode="json")


def _command(name: str) -> type[Command[Any]]:
    try:
        return commands_by_name()[name]
    except KeyError:
        raise ToolError(f"there is no command {name!r}; command_list shows them") from None

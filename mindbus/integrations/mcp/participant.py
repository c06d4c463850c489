"""Participant behind an MCP client: whose bus and artifacts its tools use, and what its tools may tell of a failure."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.identities import user_of
from mindbus.bus.client import Client
from mindbus.errors import MindBusError, ReplyError
from mindbus.redaction import without_secrets
from mindbus.sdk.artifacts import Artifacts

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Participant:
    """Whom a client acts as; `artifacts` opens theirs for reading and writing, `answer_s` is how long an answer takes.

    `asking` is open while a message to models waits for its answer. It raises where those have cost their tokens of the
    day, or too many wait.
    """

    bus: Client
    artifacts: Callable[[], AbstractAsyncContextManager[Artifacts]]
    answer_s: float
    asking: Callable[[], AbstractContextManager[object]] = nullcontext

    @property
    def user_id(self) -> str:
        """Raises ToolError where it is an agent or a service, which have no dialogue and no tasks."""
        user_id = user_of(self.bus.owner)
        if user_id is None:
            raise ToolError(f"{self.bus.owner} is not a person; sign in as one, or start `mindbus mcp --as NAME`")
        return user_id


# The one whose message this is: over HTTP another one may sign in with each request.
ParticipantOf = Callable[[Context[Any, Any]], Participant]


def of_one(participant: Participant) -> ParticipantOf:
    """For a server with one client, as over standard input and output."""
    return lambda _context: participant


def told(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The tool with its expected failures as results that a model can read and act on."""

    @wraps(tool)
    async def telling(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except ValidationError as invalid:
            raise ToolError(explain(invalid)) from invalid
        except MindBusError as error:
            text = error.message if isinstance(error, ReplyError) else str(error)
            raise ToolError(without_secrets(text)) from error

    return telling

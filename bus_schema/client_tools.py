"""Tools of whoever asks the dialogue: offered to the model beside its own, run by the asker."""

import json
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from bus_schema.history import MAX_CONTENT_CHARS, HistoryToolCall
from bus_schema.messages import Value

MAX_CLIENT_TOOLS = 128
MAX_DECLARATION_CHARS = 20_000
ANY_TOOL = "required"

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class ClientTool(Value):
    """A function that the asker runs; `parameters` is the JSON schema of its arguments."""

    name: ToolName
    description: str = Field(default="", max_length=4000)
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})

    @model_validator(mode="after")
    def _is_not_too_long(self) -> Self:
        if len(json.dumps(self.parameters)) > MAX_DECLARATION_CHARS:
            raise ValueError(f"the schema of {self.name} has more than {MAX_DECLARATION_CHARS} characters")
        return self


class ToolResult(Value):
    """Result of one call."""

    call_id: str = Field(min_length=1, max_length=128)
    content: str = Field(max_length=MAX_CONTENT_CHARS)


class ToolRound(Value):
    """Calls of one answer, each with the asker's result; `content` is the text that came with the calls."""

    content: str = Field(default="", max_length=MAX_CONTENT_CHARS)
    calls: tuple[HistoryToolCall, ...] = Field(min_length=1, max_length=64)
    results: tuple[ToolResult, ...] = Field(max_length=64)

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        called, answered = [call.id for call in self.calls], [result.call_id for result in self.results]
        if missing := next((call_id for call_id in called if call_id not in answered), None):
            raise ValueError(f"the call {missing} has no result")
        if sorted(called) != sorted(answered) or len(set(called)) < len(called):
            raise ValueError("every result belongs to one of the calls, and no call has two")
        return self


class ClientTools(Value):
    """Tools of the asker, with the rounds of calls for the message so far, oldest first.

    `choice` makes the model call the tool of that name, or, if it is `required`, any tool.
    """

    tools: tuple[ClientTool, ...] = Field(default=(), max_length=MAX_CLIENT_TOOLS)
    choice: ToolName | None = None
    rounds: tuple[ToolRound, ...] = Field(default=(), max_length=200)

    @property
    def call_ids(self) -> frozenset[str]:
        """Calls for which there are results."""
        return frozenset(call.id for each in self.rounds for call in each.calls)

    @model_validator(mode="after")
    def _names_one_tool_each(self) -> Self:
        names = [tool.name for tool in self.tools]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two tools are called {twice}")
        if self.choice not in (None, ANY_TOOL, *names):
            raise ValueError(f"there is no tool {self.choice}; there are {', '.join(names) or 'none'}")
        return self

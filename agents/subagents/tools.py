"""The tools that a sub-agent may use, each with what a model is told of it."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import BaseModel, ValidationError

from agents.models.language_model import Tool, ToolCall

log = structlog.get_logger()

_LISTED = 12


class ToolFailed(Exception):
    """The tool could not do it; its words go to the model, which may try otherwise."""


@dataclass(frozen=True)
class BoundTool:
    """A tool at hand: its arguments as a model of ours, what is done with them."""

    name: str
    description: str
    arguments: type[BaseModel]
    use: Callable[[Any], Awaitable[str]]

    @property
    def tool(self) -> Tool:
        """Description of the tool for a model."""
        schema = self.arguments.model_json_schema()
        return Tool(name=self.name, description=self.description, parameters=schema)


class Toolbox:
    """Runs what a model calls; whatever goes wrong with that is said in words that a model can act on."""

    def __init__(self, instruments: Sequence[BoundTool]) -> None:
        self._by_name: Mapping[str, BoundTool] = {each.name: each for each in instruments}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Descriptions of all tools."""
        return tuple(each.tool for each in self._by_name.values())

    async def use(self, call: ToolCall) -> str:
        """Result of a tool. Raises ToolFailed."""
        instrument = self._by_name.get(call.name)
        if instrument is None:
            raise ToolFailed(f"there is no tool {call.name!r}; there are: {', '.join(self._by_name) or 'none'}")
        arguments = read_arguments(call, instrument.arguments)
        try:
            return await instrument.use(arguments)
        except ToolFailed:
            raise
        except Exception as error:  # whatever a tool raises, the model's calls so far are paid for
            log.exception("tool failed", tool=call.name)
            raise ToolFailed(f"{call.name} has failed ({type(error).__name__}); go on without it") from error


def read_arguments(call: ToolCall, model: type[BaseModel]) -> BaseModel:
    """Validated arguments of a call. Raises ToolFailed with what is wrong."""
    try:
        given = json.loads(call.arguments or "{}")
    except ValueError as error:
        raise ToolFailed(f"the arguments of {call.name} are not JSON ({error}); call it again") from error
    try:
        return model.model_validate(given)
    except ValidationError as error:
        flaws = "; ".join(
            f"{'.'.join(map(str, flaw['loc'])) or 'arguments'}: {flaw['msg']}" for flaw in error.errors()[:_LISTED]
        )
        raise ToolFailed(f"the arguments of {call.name} do not fit: {flaws}; call it again") from error

"""The master's side of delegation: what its model may call, what has come of that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.models.language_model import Message, Tool, ToolCall
from agents.text import Language, language_of
from bus_schema.subagent import MAX_TASK_CHARS

_PREFIX = "delegate_to_"
_LONGEST_TEXT = 300

_NO_END = {
    Language.ENGLISH: "I have asked sub-agents {n} times without coming to an end. This is the last I heard: {last}",
    Language.RUSSIAN: "Обращений к подагентам было {n}, но конца нет. Вот последнее, что удалось узнать: {last}",
}


@dataclass(frozen=True)
class Round:
    """One answer of the model in which it called for help, with what came of each call, in their order."""

    said: Message
    results: tuple[Message, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """As the model is shown it afterwards."""
        return (self.said, *self.results)


class Help(Protocol):
    """Whom the master may turn to while it answers one message."""

    @property
    def tools(self) -> Sequence[Tool]:
        """What its model may call."""

    @property
    def most_rounds(self) -> int:
        """How often, until it has to answer."""

    @property
    def had(self) -> Sequence[Round]:
        """What has been done already, before a crash."""

    async def give(self, number: int, text: str, calls: Sequence[ToolCall]) -> Round:
        """Have done what the model calls for; the rounds are counted from 0."""
        ...


class Alone:
    """Nobody to turn to."""

    tools: Sequence[Tool] = ()
    most_rounds = 0
    had: Sequence[Round] = ()

    async def give(self, number: int, text: str, calls: Sequence[ToolCall]) -> Round:
        """Never called, since there is no tool to call."""
        raise AssertionError("unreachable: there are no tools")


def delegation_tool(name: str, description: str) -> Tool:
    """How a model gives a task to a sub-agent: a tool of its own each, with one argument, so that small models manage.

    The name of the tool is all that tells which sub-agent is meant.
    """
    task = {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_TASK_CHARS,
        "description": "What to do, in full sentences, with all that has to be known for it, in the user's language.",
    }
    about = description or "It does what it is asked to."
    said = f"Give a task to the sub-agent {name!r}, which remembers what it was told before. {about}"
    parameters = {"type": "object", "properties": {"task": task}, "required": ["task"], "additionalProperties": False}
    return Tool(name=f"{_PREFIX}{name}", description=said, parameters=parameters)


def subagent_of(tool: str) -> str:
    """Which sub-agent a tool of this name delegates to, whether or not there is one."""
    return tool.removeprefix(_PREFIX)


def no_end(rounds: Sequence[Message]) -> str:
    """What to say where a model will not stop calling for help."""
    results = [message.content for message in rounds if message.role == "tool"]
    last = results[-1][:_LONGEST_TEXT] if results else "—"
    return _NO_END[language_of(last)].format(n=len(results), last=last)

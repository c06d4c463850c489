"""The master's side of delegation: what its model may call, what has come of that."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.models.language_model import ModelMessage, Tool, ToolCall
from agents.models.messages import sanitise_text
from bus_schema.subagent import MAX_TASK_CHARS
from language.words import Language, language_of

_PREFIX = "delegate_to_"
_LONGEST_TEXT = 300

_NO_END = {
    Language.ENGLISH: "I have asked sub-agents {n} times without coming to an end. This is the last I heard: {last}",
    Language.RUSSIAN: "Обращений к подагентам было {n}, но конца нет. Вот последнее, что удалось узнать: {last}",
}
_NO_SUCH = {
    Language.ENGLISH: "There is no sub-agent {name!r}; there are: {known}.",
    Language.RUSSIAN: "Подагента {name!r} нет; есть: {known}.",
}
_NO_ANSWER = {
    Language.ENGLISH: "The sub-agent {name} has not answered: {why}. Go on without it, or try again later.",
    Language.RUSSIAN: "Подагент {name} не ответил: {why}. Продолжайте без него или спросите позже.",
}
_UNREADABLE = {
    Language.ENGLISH: "The call cannot be read: {why}. Call again with JSON such as {form}.",
    Language.RUSSIAN: "Вызов не читается: {why}. Повторите его с JSON вида {form}.",
}
_FORM = '{"task": "…"}'
_LONGEST_REASON = 300


@dataclass(frozen=True)
class DelegationRound:
    """One answer of the model in which it called for help, with what came of each call, in their order."""

    said: ModelMessage
    results: tuple[ModelMessage, ...]

    @property
    def messages(self) -> tuple[ModelMessage, ...]:
        """The round as the model is shown it afterwards."""
        return (self.said, *self.results)


class Delegator(Protocol):
    """Whom the master may turn to while it answers one message."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools that the model may call."""

    @property
    def most_rounds(self) -> int:
        """Number of rounds after which the model has to answer."""

    @property
    def completed(self) -> Sequence[DelegationRound]:
        """Rounds that were completed before a crash."""

    async def delegate(self, number: int, text: str, calls: Sequence[ToolCall]) -> DelegationRound:
        """Carry out the calls of one answer; rounds are counted from 0."""
        ...


class NoDelegator:
    """Delegator without sub-agents."""

    tools: Sequence[Tool] = ()
    most_rounds = 0
    completed: Sequence[DelegationRound] = ()

    async def delegate(self, number: int, text: str, calls: Sequence[ToolCall]) -> DelegationRound:
        """Carry out the calls of one answer; rounds are counted from 0."""
        raise AssertionError("unreachable: there are no tools")


def delegation_tool(name: str, description: str) -> Tool:
    """The tool by which a model gives a sub-agent a task: one tool each with one argument, so that small models manage.

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
    """Name of the sub-agent that a tool delegates to, whether or not it exists."""
    return tool.removeprefix(_PREFIX)


def inconclusive_answer(rounds: Sequence[ModelMessage]) -> str:
    """The answer where a model calls tools without end."""
    results = [message.content for message in rounds if message.role == "tool"]
    last = results[-1][:_LONGEST_TEXT] if results else "—"
    return _NO_END[language_of(last)].format(n=len(results), last=last)


class UnreadableCall(Exception):
    """The model's arguments hold no task."""


def task_of(call: ToolCall) -> str:
    """The task in a call's arguments. Raises UnreadableCall."""
    try:
        given = json.loads(call.arguments)
    except ValueError as error:
        raise UnreadableCall(f"it is no JSON ({error})") from error
    task = given.get("task") if isinstance(given, dict) else given
    if not isinstance(task, str) or not task.strip():
        raise UnreadableCall("it has no task")
    return sanitise_text(task).strip()


def unknown_subagent(name: str, known: Collection[str], language: Language) -> str:
    """The model has made it up."""
    return _NO_SUCH[language].format(name=name, known=", ".join(sorted(known)) or "—")


def subagent_failed(name: str, why: str, language: Language) -> str:
    """The sub-agent is away, too slow, or has failed."""
    return _NO_ANSWER[language].format(name=name, why=why[:_LONGEST_REASON].rstrip("."))


def unreadable_call(why: str, language: Language) -> str:
    """The model's JSON is broken, or says nothing."""
    return _UNREADABLE[language].format(why=why[:_LONGEST_REASON], form=_FORM)

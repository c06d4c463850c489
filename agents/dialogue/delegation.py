"""Delegation as a model sees it: a tool for each sub-agent, the tasks in its calls, results in words."""

import json
import re
from collections.abc import Collection

from agents.models.explicit_delegation import content_for
from agents.models.language_model import Tool, ToolCall
from bus_schema.history import sanitise_text
from bus_schema.subagent import MAX_TASK_CHARS
from language.words import Language

DELEGATION_PREFIX = "delegate_to_"
_NO_SUCH = {
    Language.ENGLISH: "There is no sub-agent {name!r}; there are: {known}.",
    Language.RUSSIAN: "Подагента {name!r} нет; есть: {known}.",
}
_NO_ANSWER = {
    Language.ENGLISH: "The sub-agent {name} has not answered: {why}. Go on without it, or try again later.",
    Language.RUSSIAN: "Подагент {name} не ответил: {why}. Продолжайте без него или спросите позже.",
}
_ONLY_REPEATED = {
    Language.ENGLISH: "The sub-agent {name} has only repeated the message. Answer the user yourself.",
    Language.RUSSIAN: "Подагент {name} лишь повторил сообщение. Ответьте пользователю сами.",
}
_UNREADABLE = {
    Language.ENGLISH: "The call cannot be read: {why}. Call again with JSON such as {form}.",
    Language.RUSSIAN: "Вызов не читается: {why}. Повторите его с JSON вида {form}.",
}
_FORM = '{"task": "…"}'
_LONGEST_REASON = 300
_WORD = re.compile(r"\w+")


def delegation_tool(name: str, description: str) -> Tool:
    """The tool by which a model gives a sub-agent a task: one tool each with one argument, so that small models manage.

    The name of the tool is all that tells which sub-agent is meant.
    """
    task = {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_TASK_CHARS,
        "description": "The message itself: the fact it shall remember or the question it shall answer, complete, with "
        "names and numbers, in the user's language. Not “tell the sub-agent …”, not “ask it …”.",
    }
    about = description or "It does what it is asked to."
    # Without an example: small models follow one where nobody has asked for a sub-agent.
    purpose = (
        f"Sends one message to the sub-agent {name!r} and returns its answer. Only where the user asks for a sub-agent "
        f"or for what it does. {about} It reads this message alone, remembers the ones before: a fact is one message, "
        "a question about it the next."
    )
    parameters = {"type": "object", "properties": {"task": task}, "required": ["task"], "additionalProperties": False}
    return Tool(name=f"{DELEGATION_PREFIX}{name}", description=purpose, parameters=parameters)


def subagent_of(tool: str) -> str:
    """Name of the sub-agent that a tool delegates to, whether or not it exists."""
    return tool.removeprefix(DELEGATION_PREFIX)


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
    return content_for(subagent_of(call.name), sanitise_text(task).strip())


def readable_task(call: ToolCall) -> str | None:
    """The task in a call's arguments, None where there is none."""
    try:
        return task_of(call)
    except UnreadableCall:
        return None


def unknown_subagent(name: str, known: Collection[str], language: Language) -> str:
    """The model has made it up."""
    return _NO_SUCH[language].format(name=name, known=", ".join(sorted(known)) or "—")


def subagent_failed(name: str, why: str, language: Language) -> str:
    """The sub-agent is away, too slow, or has failed."""
    return _NO_ANSWER[language].format(name=name, why=why[:_LONGEST_REASON].rstrip("."))


def heard(name: str, task: str, response: str, language: Language) -> str:
    """Words for the model of an answer: where it is the task again, as small models give it, that it says nothing."""
    repeats = _WORD.findall(response.lower()) == _WORD.findall(task.lower())
    return _ONLY_REPEATED[language].format(name=name) if repeats else response


def unreadable_call(why: str, language: Language) -> str:
    """The model's JSON is broken, or says nothing."""
    return _UNREADABLE[language].format(why=why[:_LONGEST_REASON], form=_FORM)

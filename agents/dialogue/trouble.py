"""What the master's model is told where a delegation comes to nothing, in the language of the talk."""

import json
from collections.abc import Collection

from agents.models.language_model import ToolCall
from agents.models.tool_calls import sayable
from agents.text import Language

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


class UnreadableCall(Exception):
    """The model's arguments hold no task."""


def task_of(call: ToolCall) -> str:
    """What a model wants done. Raises UnreadableCall."""
    try:
        given = json.loads(call.arguments)
    except ValueError as broken:
        raise UnreadableCall(f"it is no JSON ({broken})") from broken
    task = given.get("task") if isinstance(given, dict) else given
    if not isinstance(task, str) or not task.strip():
        raise UnreadableCall("it has no task")
    return sayable(task).strip()


def no_such(name: str, known: Collection[str], language: Language) -> str:
    """The model has made it up."""
    return _NO_SUCH[language].format(name=name, known=", ".join(sorted(known)) or "—")


def no_answer(name: str, why: str, language: Language) -> str:
    """The sub-agent is away, too slow, or has failed."""
    return _NO_ANSWER[language].format(name=name, why=why[:_LONGEST_REASON].rstrip("."))


def unreadable(why: str, language: Language) -> str:
    """The model's JSON is broken, or says nothing."""
    return _UNREADABLE[language].format(why=why[:_LONGEST_REASON], form=_FORM)

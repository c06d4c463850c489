"""Calls of the task tools that a user asks for in so many words."""

import re
from collections.abc import Sequence

from agents.due import NoDate, parse_due, split_due
from agents.models.language_model import ModelMessage, Tool, ToolCall, tool_call
from agents.present import Present
from agents.reminders import find_reminders
from language.words import Language

LIST, ADD, COMPLETE, MOVE, CANCEL = "list_tasks", "add_task", "complete_task", "move_task", "cancel_task"
NAMES = frozenset({LIST, ADD, COMPLETE, MOVE, CANCEL})
# How the results of these tools begin that found no task.
NOT_FOUND = {Language.ENGLISH: "No open task fits", Language.RUSSIAN: "Нет открытой задачи"}
_PLEASE = r"^\W*(?:(?:пожалуйста|please|can\s+you|could\s+you|можешь|а|и|so|and)\b\W*)*"
_END = r"\W*(?:пожалуйста|please)?\W*$"
_ASKS_TASKS = re.compile(
    r"\b(?:какие|покажи\w*|перечисли\w*|назови\w*|список)\b[^.!]*\b(?:задач\w*|дел|дела)\b"
    r"|\bчто\s+(?:мне|нам|я\s+долж\w+)\s+(?:[\w-]+\s+){0,3}(?:с?делать|успеть)\b"
    r"|\bчто\s+(?:у\s+меня\s+)?(?:запланировано\s+)?на\s+(?:сегодня|завтра|(?:этой\s+|эту\s+)?недел\w)\b"
    r"|\b(?:есть|остались)\s+ли\s+(?:у\s+меня\s+)?(?:[\w-]+\s+)?(?:задач\w*|дела)\b"
    r"|\bwhat(?:\s+is|\s+are|['’]s)?\s+(?:still\s+)?due\b|\bwhat\s+(?:are\s+)?my\s+(?:open\s+)?(?:tasks|to-?dos?)\b"
    r"|\b(?:show|list|tell)\s+(?:me\s+)?my\s+(?:open\s+)?(?:tasks|to-?dos?)\b|\bwhat(?:\s+is|['’]s)\s+on\s+my\s+(?:plate|list)\b"
    r"|\bwhat\s+(?:do\s+i|should\s+i|must\s+i)\s+(?:have\s+to\s+|need\s+to\s+)?(?:do|get\s+done)\b(?=[^?]*(?:today|tomorrow|week|\?|$))"
    r"|\bdo\s+i\s+have\s+any\s+(?:open\s+)?(?:tasks|to-?dos?)\b|\bwhat\s+tasks\s+do\s+i\s+have\b",
    re.IGNORECASE,
)
_WHEN = (
    ("today", r"\b(?:сегодня|today|tonight)\b"),
    ("tomorrow", r"\b(?:завтра|tomorrow)\b"),
    ("week", r"\b(?:недел\w*|week)\b"),
)
_MOVE = re.compile(
    rf"{_PLEASE}(?:перенес(?:и|ите|ти)|передвинь(?:те)?|сдвинь(?:те)?|отложи(?:те)?|move|reschedule|postpone|shift|push)\s+"
    rf"(?:задачу\s+|the\s+|my\s+|task\s+)*(?P<task>.+?)\s+(?:на|до|к|ко|to|until|till|for)\s+(?P<due>[^,]+?){_END}",
    re.IGNORECASE,
)
_CANCEL = re.compile(
    rf"{_PLEASE}(?:отмени(?:те)?|удали(?:те)?|вычеркни(?:те)?|cancel|call\s+off|drop|delete)\s+"
    rf"(?:задачу\s+|the\s+|my\s+|task\s+)*(?P<task>.+?){_END}",
    re.IGNORECASE,
)
_DONE = re.compile(
    rf"{_PLEASE}(?:"
    r"я\s+(?:уже\s+|наконец\s+)*(?:сделал|закончил|завершил|выполнил)а?\s+(?P<one>.+?)"
    r"|отметь(?:те)?\s+(?:задачу\s+)?(?P<two>.+?)\s+(?:как\s+)?(?:выполненн|сделанн|готов)\w*"
    r"|i(?:\s+have|['’]ve)?\s+(?:already\s+|just\s+|finally\s+)*(?:done|finished|completed)\s+(?:with\s+)?(?P<three>.+?)"
    r"|mark\s+(?P<four>.+?)\s+(?:as\s+)?(?:done|complete|completed|finished)"
    rf"){_END}",
    re.IGNORECASE,
)
_ADD = re.compile(
    rf"{_PLEASE}(?:добав(?:ь|ьте)|запиши(?:те)?|созда(?:й|йте)|add|create)\s+(?:мне\s+|a\s+|new\s+|новую\s+)*"
    rf"(?:задачу|task|to-?do)\s*[:—-]?\s*(?:to\s+)?(?P<text>.+?){_END}",
    re.IGNORECASE | re.DOTALL,
)
_ARTICLES = re.compile(r"^(?:the|my|a|мой|мою|моё)\s+", re.IGNORECASE)


def next_task_call(
    said: str, present: Present | None, since: Sequence[ModelMessage], tools: Sequence[Tool]
) -> ToolCall | None:
    """The call that a message asks for, unless it has been made."""
    names = {tool.name for tool in tools}
    if not names >= NAMES or present is None or any(message.tool_calls for message in since):
        return None
    if _ASKS_TASKS.search(said):
        due = next((due for due, pattern in _WHEN if re.search(pattern, said, re.IGNORECASE)), "all")
        return tool_call(LIST, due=due)
    moved = _MOVE.match(said)
    if moved and _is_date(moved["due"], present):
        return tool_call(MOVE, task=_bare(moved["task"]), due=moved["due"])
    if done := _DONE.match(said):
        return tool_call(COMPLETE, task=_bare(next(text for text in done.groupdict().values() if text)))
    if cancelled := _CANCEL.match(said):
        return tool_call(CANCEL, task=_bare(cancelled["task"]))
    return _addition(said, present)


def is_about_nothing(result: ModelMessage) -> bool:
    """Whether a call to complete a task has met none: the user may have spoken of something else."""
    return result.name == COMPLETE and result.content.startswith(tuple(NOT_FOUND.values()))


def without_ids(result: str) -> str:
    """A tool's words without the ids that are for models."""
    return re.sub(r"\s*\[task_[A-Za-z0-9_-]+\]", "", result)


def with_plain_results(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages for an answer without calls: no ids in results."""
    return [
        message.model_copy(update={"content": without_ids(message.content)}) if message.role == "tool" else message
        for message in messages
    ]


def _addition(said: str, present: Present) -> ToolCall | None:
    reminders = find_reminders(said, present.now)
    if reminders:
        first = reminders[0]
        return _reminder(first.text, first.due.said)
    added = _ADD.match(said)
    if added is None:
        return None
    text, due = split_due(added["text"], present.now)
    return tool_call(ADD, text=text or added["text"], **({"due": due.said} if due else {}))


def _reminder(text: str, due: str) -> ToolCall:
    return tool_call(ADD, text=text, due=due, remind=True)


def _is_date(text: str, present: Present) -> bool:
    try:
        parse_due(text, present.now)
    except NoDate:
        return False
    return True


def _bare(task: str) -> str:
    return _ARTICLES.sub("", task.strip(" \"'«»“”.,!")).strip()

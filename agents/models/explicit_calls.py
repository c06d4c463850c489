"""Tool calls that a user asks for in so many words: tasks, delegation, tables, artifacts, memory."""

import re
from collections.abc import Callable, Sequence

from agents.due import NoDate, parse_due, split_due
from agents.models.explicit_delegation import DELEGATE, delegations
from agents.models.language_model import ModelMessage, Tool, ToolCall, tool_call
from agents.present import Present
from agents.reminders import find_reminders
from language.sentences import sentences
from language.words import Language

SEARCH = "search_memory"
ARTIFACT_ID = re.compile(r"\bart_[A-Za-z0-9_-]{1,64}")
_OPERATIONS = {
    "sum": r"sum|total|сумм\w*|итог\w*",
    "mean": r"mean|average|средн\w*",
    "max": r"max\w*|largest|highest|максим\w*|наибольш\w*",
    "min": r"min\w*|smallest|lowest|миним\w*|наименьш\w*",
    "count": r"count|how many|сколько|количеств\w*|число",
}
_OF = r"(?:\s+(?:of|the|in|column|values?|значени\w*|колонк\w*|столбц\w*|по|в))*"
_GROUPED = re.compile(r"\b(?:by|per|for each|по|для кажд\w+)\s+(?:колонке\s+|столбцу\s+|column\s+)?[«\"']?([^\W\d]\w*)")
_NOT_COLUMNS = frozenset({"rows", "row", "строк", "строки", "строка", "each", "in", "of", "в", "из", "для", "по", "by"})
_MOST_QUERY_CHARS = 2000
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
# Words that may be about anything: "What should I do?", "Delete the last paragraph", "I've done the report".
_ASKS_ADVICE = re.compile(r"\b(?:what\s+(?:do|should|must)\s+i|что\s+(?:мне|нам|я\s+долж))\b", re.IGNORECASE)
_CANCELS = re.compile(
    rf"{_PLEASE}(?:отмени|cancel|call\s+off|\w+\s+(?:(?:the|my)\s+)?(?:task|задачу)\b)", re.IGNORECASE
)
_MARKS = re.compile(r"\b(?:mark|отметь\w*)\b", re.IGNORECASE)
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


def explicit_task_call(said: str, present: Present | None, tools: Sequence[Tool]) -> ToolCall | None:
    """The call that a message asks for and nothing else; None where a model may understand it otherwise."""
    call = next_task_call(said, present, (), tools) if len(sentences(said)) == 1 else None
    if call is None:
        return None
    is_doubtful = {
        LIST: "all" in call.arguments and bool(_ASKS_ADVICE.search(said)),
        COMPLETE: not _MARKS.search(said),
        CANCEL: not _CANCELS.match(said),
    }
    return None if is_doubtful.get(call.name, False) else call


def planned_delegations(said: str, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """The delegations of a request such as `tell the sub-agent …, then ask it …`, in order."""
    names = [tool.name.removeprefix(DELEGATE) for tool in tools if tool.name.startswith(DELEGATE)]
    plan = delegations(said, names) if names else []
    return tuple(tool_call(f"{DELEGATE}{name}", f"call_{place}", task=task) for place, (name, task) in enumerate(plan))


def next_tool(
    task: str, since: Sequence[ModelMessage], tools: Sequence[Tool], is_known: Callable[[], bool]
) -> ToolCall | None:
    """The one call that a task asks for, unless it has been made: to compute, to read, else to look up a question."""
    names = {tool.name for tool in tools}
    if any(message.tool_calls for message in since):
        return None
    artifact = ARTIFACT_ID.search(task)
    if artifact and "compute" in names and (arguments := _computation(task.replace(artifact[0], " "))):
        return tool_call("compute", artifact_id=artifact[0], **arguments)
    if artifact and "read_artifact" in names:
        return tool_call("read_artifact", artifact_id=artifact[0])
    if SEARCH in names and task.rstrip('»" ').endswith("?") and not is_known():
        return tool_call(SEARCH, query=task[:_MOST_QUERY_CHARS])
    return None


def _computation(text: str) -> dict[str, str] | None:
    for operation, names in _OPERATIONS.items():
        found = re.search(rf"\b(?:{names})\b{_OF}\s+[«\"']?([^\W\d]\w*)?", text, re.IGNORECASE)
        if not found:
            continue
        column = found[1] if found[1] and found[1].lower() not in _NOT_COLUMNS else None
        groups = [group for group in _GROUPED.findall(text) if group != column]
        if column or operation == "count":
            optional = {"column": column, "group_by": groups[-1] if groups else None}
            return {"operation": operation} | {name: value for name, value in optional.items() if value}
    return None


def is_about_nothing(result: ModelMessage) -> bool:
    """Whether a call to complete a task has met none: the user may have spoken of something else."""
    return result.name == COMPLETE and result.content.startswith(tuple(NOT_FOUND.values()))


def without_ids(result: str) -> str:
    """A tool's words without the ids that are for models."""
    return re.sub(r"\s*\[task_[A-Za-z0-9_-]+\]", "", result)


def with_plain_results(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages for an answer without calls: no ids in the results of task tools."""
    return [
        message.model_copy(update={"content": without_ids(message.content)}) if message.name in NAMES else message
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

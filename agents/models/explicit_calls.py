"""Tool calls that a user asks for in so many words: tasks, delegation, tables, artifacts, memory."""

import re
from collections.abc import Callable, Sequence

from agents.models.explicit_delegation import DELEGATE, delegations
from agents.models.language_model import ModelMessage, Tool, ToolCall, tool_call
from agents.present import Present
from agents.task_requests import TaskRequest, find_reported_changes, find_requests
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
_OF_TASKS = re.compile(
    r"задач|дел[аоу]?\b|дела[тю]|сдела|план|срок|дедлайн|напомн|напомин|просроч|успе[тею]|должн|надо|обеща|спис"
    r"|готов|выполн|законч|отправ|сдал|отмен|перенес|отлож"
    r"|done|finish|complet|ready|sent|cancel|call\w* off|move|postpon|resched|push"
    r"|task|to-?do|due|deadline|plan|remind|schedul|agenda|overdue|list|must|should|have to|supposed|promis|left"
    r"|need|forget|забы|нужн",
    re.IGNORECASE,
)
NAMES = frozenset({LIST, ADD, COMPLETE, MOVE, CANCEL})
# How the results of these tools begin that found no task.
NOT_FOUND = {Language.ENGLISH: "No open task fits", Language.RUSSIAN: "Нет открытой задачи"}


def next_task_call(
    said: str, present: Present | None, since: Sequence[ModelMessage], tools: Sequence[Tool]
) -> ToolCall | None:
    """The next call that a message asks for, or whose result it tells of."""
    if not _has_task_tools(tools) or present is None:
        return None
    requests = find_requests(said, present.now) or find_reported_changes(said, present.now)
    made = sum(len(message.tool_calls) for message in since)
    return _task_call(requests[made], made) if made < len(requests) else None


def explicit_task_calls(said: str, present: Present | None, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """The calls that a message asks for and nothing else; none where a model may understand it otherwise."""
    if not _has_task_tools(tools) or present is None or len(sentences(said)) != 1:
        return ()
    requests = find_requests(said, present.now)
    is_certain = all(request.is_certain for request in requests)
    return tuple(_task_call(request, place) for place, request in enumerate(requests)) if is_certain else ()


def _has_task_tools(tools: Sequence[Tool]) -> bool:
    return {tool.name for tool in tools} >= NAMES


def _task_call(request: TaskRequest, place: int) -> ToolCall:
    call_id = f"call_{place}"
    match request.kind:
        case "list":
            return tool_call(LIST, call_id, due=request.due)
        case "add":
            return _add_call(request, call_id)
        case "move":
            return tool_call(MOVE, call_id, task=request.text, due=request.due)
        case "complete":
            return tool_call(COMPLETE, call_id, task=request.text)
        case "cancel":
            return tool_call(CANCEL, call_id, task=request.text)


def _add_call(request: TaskRequest, call_id: str) -> ToolCall:
    if not request.due:
        return tool_call(ADD, call_id, text=request.text)
    if not request.remind:
        return tool_call(ADD, call_id, text=request.text, due=request.due)
    return tool_call(ADD, call_id, text=request.text, due=request.due, remind=True)


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
    """Whether a call to change a task has met none: the user may have spoken of something else."""
    return result.name in (COMPLETE, MOVE, CANCEL) and result.content.startswith(tuple(NOT_FOUND.values()))


def tools_for(said: str, tools: Sequence[Tool]) -> Sequence[Tool]:
    """The tools without those of tasks, where the user's words name neither work nor a time for it.

    Small models call whatever they are offered. What sounds like a task and is none of these words, agents hear later.
    """
    return tools if _OF_TASKS.search(said) else [tool for tool in tools if tool.name not in NAMES]


def without_ids(result: str) -> str:
    """A tool's words without the ids that are for models."""
    return re.sub(r"\s*\[task_[A-Za-z0-9_-]+\]", "", result)


def with_plain_results(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages for an answer without calls: no ids in the results of task tools."""
    return [
        message.model_copy(update={"content": without_ids(message.content)}) if message.name in NAMES else message
        for message in messages
    ]

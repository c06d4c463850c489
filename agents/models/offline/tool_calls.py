"""Tool calls that a user asks for in so many words: delegation, tables, artifacts, memory."""

import re
from collections.abc import Sequence

from agents.models.explicit_delegation import delegations
from agents.models.language_model import ModelMessage, Tool, ToolCall, tool_call

DELEGATE = "delegate_to_"
SEARCH = "search_memory"
_ARTIFACT = re.compile(r"\bart_[A-Za-z0-9_-]{1,64}")
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


def next_delegation(said: str, since: Sequence[ModelMessage], tools: Sequence[Tool]) -> ToolCall | None:
    """The next delegation of a request such as `tell the sub-agent …, then ask it …`, given the calls since."""
    names = [tool.name.removeprefix(DELEGATE) for tool in tools if tool.name.startswith(DELEGATE)]
    called = sum(len(message.tool_calls) for message in since)
    plan = delegations(said, names) if names else []
    if called >= len(plan):
        return None
    name, task = plan[called]
    return tool_call(f"{DELEGATE}{name}", f"call_{called}", task=task)


def next_tool(task: str, since: Sequence[ModelMessage], tools: Sequence[Tool], is_known: bool) -> ToolCall | None:
    """The one call that a task asks for, unless it has been made: to compute, to read, else to look up a question."""
    names = {tool.name for tool in tools}
    if any(message.tool_calls for message in since):
        return None
    artifact = _ARTIFACT.search(task)
    if artifact and "compute" in names and (arguments := _computation(task.replace(artifact[0], " "))):
        return tool_call("compute", artifact_id=artifact[0], **arguments)
    if artifact and "read_artifact" in names:
        return tool_call("read_artifact", artifact_id=artifact[0])
    if SEARCH in names and not is_known and task.rstrip('»" ').endswith("?"):
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

"""Which tool a task asks for in so many words, where there is no model to see it."""

import json
import re
from collections.abc import Sequence
from typing import Any

from agents.models.language_model import ModelMessage, Tool, ToolCall

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


def next_tool(task: str, since: Sequence[ModelMessage], tools: Sequence[Tool], is_known: bool) -> ToolCall | None:
    """The one call that the task asks for, unless it has been made: to reckon, to read, else to look up a question."""
    names = {tool.name for tool in tools}
    if any(message.tool_calls for message in since):
        return None
    artifact = _ARTIFACT.search(task)
    if artifact and "compute" in names and (wanted := _reckoning(task, artifact[0])):
        return _call("compute", **wanted)
    if artifact and "read_artifact" in names:
        return _call("read_artifact", artifact_id=artifact[0])
    if SEARCH in names and not is_known and task.rstrip('»" ').endswith("?"):
        return _call(SEARCH, query=task[:2000])
    return None


def _reckoning(task: str, artifact_id: str) -> dict[str, Any] | None:
    text = task.replace(artifact_id, " ")
    for operation, said in _OPERATIONS.items():
        found = re.search(rf"\b(?:{said})\b{_OF}\s+[«\"']?([^\W\d]\w*)?", text, re.IGNORECASE)
        if not found:
            continue
        column = found[1] if found[1] and found[1].lower() not in _NOT_COLUMNS else None
        groups = [group for group in _GROUPED.findall(text) if group != column]
        wanted = {"artifact_id": artifact_id, "operation": operation, "column": column}
        wanted["group_by"] = groups[-1] if groups else None
        if column or operation == "count":
            return {name: value for name, value in wanted.items() if value is not None}
    return None


def _call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"call_{name}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))

"""Tool calls that a user asks for in so many words: delegation, tables, artifacts, memory."""

import json
import re
from collections.abc import Sequence

from agents.models.language_model import ModelMessage, Tool, ToolCall

DELEGATE = "delegate_to_"
SEARCH = "search_memory"
_THEN = re.compile(
    r"\s*[,;.]?\s*(?:\b(?:а|и|and)\s+)?\b(?:потом|затем|после\s+(?:этого|чего)|then|after\s+that)\b\s*,?\s*",
    re.IGNORECASE,
)
_POLITE = r"(?:\W*(?:пожалуйста|please|could\s+you|can\s+you)\b)?\W*"
_TELLS = r"скажи\w*|сообщи\w*|передай\w*|расскажи\w*|поручи\w*|попроси\w*|tell|inform|remind|have|get|let"
_ASKS = r"спроси\w*|узнай\w*|уточни\w*|ask"
_WHOM = r"(?:у\s+|от\s+|к\s+)?(?:the\s+|my\s+|your\s+|моему\s+|моего\s+)?"
_SUBAGENT = r"(?:под|суб|саб)-?агент\w*|sub-?agent"
_THEM = r"(?:(?:у\s+)?(?:него|неё|нее|них|его|её|их|ему|ей|им)|it|him|her|them)\b"
_THAT = r"\W*(?:(?:о\s+том\s*,?\s*)?что\b|that\b|to\b(?=\s))?\W*"
_QUOTES = " \t\n.,;:!?«»\"'“”"
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
    return _call(f"{DELEGATE}{name}", f"call_{called}", task=task)


def next_tool(task: str, since: Sequence[ModelMessage], tools: Sequence[Tool], is_known: bool) -> ToolCall | None:
    """The one call that a task asks for, unless it has been made: to compute, to read, else to look up a question."""
    names = {tool.name for tool in tools}
    if any(message.tool_calls for message in since):
        return None
    artifact = _ARTIFACT.search(task)
    if artifact and "compute" in names and (arguments := _computation(task.replace(artifact[0], " "))):
        return _call("compute", artifact_id=artifact[0], **arguments)
    if artifact and "read_artifact" in names:
        return _call("read_artifact", artifact_id=artifact[0])
    if SEARCH in names and not is_known and task.rstrip('»" ').endswith("?"):
        return _call(SEARCH, query=task[:_MOST_QUERY_CHARS])
    return None


def delegations(said: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Sub-agents with their tasks, in order; none where the first part names no sub-agent."""
    found: list[tuple[str, str]] = []
    for part in _THEN.split(said):
        delegation = _delegation(part, names, found[-1][0] if found else None)
        if delegation is None and not found:
            return []
        if delegation is not None:
            found.append(delegation)
    return found


def _delegation(part: str, names: Sequence[str], last: str | None) -> tuple[str, str] | None:
    named = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    by_kind = rf"(?:{_SUBAGENT})(?:[\s-]+[«\"']?(?P<called>{named})\b[»\"']?)?"
    by_name = rf"(?P<name>{named})\b(?:[\s-]+(?:{_SUBAGENT}))?"
    match = re.match(
        rf"{_POLITE}(?:(?P<tells>{_TELLS})|(?P<asks>{_ASKS}))\b(?:\W*(?:пожалуйста|please)\b)?\W*"
        rf"(?:(?P<whom>{_WHOM}(?:{by_kind}|{by_name}))|{_THEM})?{_THAT}(?P<task>.*)",
        part,
        re.IGNORECASE | re.DOTALL,
    )
    if match is None or not (match["whom"] or last):
        return None
    task = match["task"].strip(_QUOTES)
    wanted = (match["called"] or match["name"] or "").lower()
    to = next((name for name in names if name.lower() == wanted), names[0] if match["whom"] else last)
    if not task or to is None:
        return None
    return to, f"{task[0].upper()}{task[1:]}{'?' if match['asks'] else '.'}"


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


def _call(name: str, call_id: str = "", **arguments: str) -> ToolCall:
    return ToolCall(id=call_id or f"call_{name}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))

"""Who is to be told or asked what, where a user says so: `tell the sub-agent …, then ask it …`."""

import json
import re
from collections.abc import Sequence

from agents.models.language_model import ModelMessage, Tool, ToolCall

DELEGATE = "delegate_to_"
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


def delegations(said: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The tasks in their order, each with whom it is for; nothing where nobody is to be told or asked."""
    found: list[tuple[str, str]] = []
    for part in _THEN.split(said):
        read = _read(part, names, found[-1][0] if found else None)
        if read is None and not found:
            return []
        if read is not None:
            found.append(read)
    return found


def next_delegation(said: str, since: Sequence[ModelMessage], tools: Sequence[Tool]) -> ToolCall | None:
    """What is to be called next, one after the other, given what has been called since this was said."""
    names = [tool.name.removeprefix(DELEGATE) for tool in tools if tool.name.startswith(DELEGATE)]
    called = sum(len(message.tool_calls) for message in since)
    plan = delegations(said, names) if names else []
    if called >= len(plan):
        return None
    name, task = plan[called]
    arguments = json.dumps({"task": task}, ensure_ascii=False)
    return ToolCall(id=f"call_{called}", name=f"{DELEGATE}{name}", arguments=arguments)


def _read(part: str, names: Sequence[str], last: str | None) -> tuple[str, str] | None:
    named = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    by_kind = rf"(?:{_SUBAGENT})(?:[\s-]+[«\"']?(?P<called>{named})\b[»\"']?)?"
    by_name = rf"(?P<name>{named})\b(?:[\s-]+(?:{_SUBAGENT}))?"
    whom = rf"{_WHOM}(?:{by_kind}|{by_name})"
    match = re.match(
        rf"{_POLITE}(?:(?P<tells>{_TELLS})|(?P<asks>{_ASKS}))\b(?:\W*(?:пожалуйста|please)\b)?\W*(?:(?P<whom>{whom})|{_THEM})?{_THAT}(?P<task>.*)",
        part,
        re.IGNORECASE | re.DOTALL,
    )
    if match is None or not (match["whom"] or last):
        return None
    task = match["task"].strip(_QUOTES)
    wanted = (match["called"] or match["name"] or "").lower()
    to = next((name for name in names if name.lower() == wanted), last if not match["whom"] else names[0])
    if not task or to is None:
        return None
    return to, f"{task[0].upper()}{task[1:]}{'?' if match['asks'] else '.'}"

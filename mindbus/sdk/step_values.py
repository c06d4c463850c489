"""Values of a step's output that conditions of its card ask about, taken from the text itself."""

import json
import re
from collections.abc import Collection
from typing import Any

Values = dict[str, bool | str | tuple[str, ...]]

_MOST_ITEMS, _LONGEST_ITEM, _LONGEST_ANSWER = 100, 2000, 200
_ITEM = re.compile(r"^ {0,3}(?:[-*+•]|\d{1,3}[.)])\s+(\S.*)$")
_FENCE = re.compile(r"^```\w*\s*\n(.*?)\n```\s*$", re.DOTALL)
_DECORATION = "#*_`>\"'«»“” \t.!:"


def values_of(text: str, asked: Collection[str]) -> Values:
    """Of what is asked, the `answer` and the `items` of a text; an item may go over several lines."""
    values: Values = {}
    if "answer" in asked:
        values["answer"] = answer_of(text)
    if "items" in asked:
        values["items"] = items_of(text)
    return values


def answer_of(text: str) -> str:
    """The first line that says something, without decoration."""
    lines = (line.strip(_DECORATION) for line in text.splitlines())
    return next(filter(None, lines), "")[:_LONGEST_ANSWER]


def items_of(text: str) -> tuple[str, ...]:
    """Items of a JSON list, or of the Markdown list in a text, at most a hundred."""
    fenced = _FENCE.match(text.strip())
    items = _json_items(fenced[1] if fenced else text)
    if items is None:
        items = _markdown_items(text)
    return tuple(item[:_LONGEST_ITEM] for item in items[:_MOST_ITEMS])


def _json_items(text: str) -> list[str] | None:
    try:
        found: Any = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, list):
        return None
    return [each.strip() if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in found if each]


def _markdown_items(text: str) -> list[str]:
    items: list[str] = []
    is_open = False
    for line in text.splitlines():
        if match := _ITEM.match(line):
            items.append(match[1].strip())
            is_open = True
        elif line.startswith((" ", "\t")) and line.strip() and is_open:
            items[-1] += f"\n{line.strip()}"
        elif line.strip():
            is_open = False
    return items

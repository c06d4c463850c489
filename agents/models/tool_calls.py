"""What models write when they call tools, made good enough to be answered."""

import re
from collections.abc import Sequence

from agents.models.language_model import ToolCall

# What else a model calls in one breath is left out.
MOST_AT_ONCE = 16
_LONGEST_ID = 64
_LONGEST_NAME = 64
_LONGEST_ARGUMENTS = 40_000
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def sayable(text: str) -> str:
    """What a model has written, without what no database keeps: NUL, halves of characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def in_order(calls: Sequence[ToolCall], prefix: str) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own by which its result finds it, each with a name."""
    known: set[str] = set()
    made = []
    for number, call in enumerate(calls[:MOST_AT_ONCE]):
        call_id = call.id if 0 < len(call.id) <= _LONGEST_ID and call.id not in known else f"{prefix}_{number}"
        known.add(call_id)
        name = _NOT_IN_A_NAME.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
        made.append(ToolCall(id=call_id, name=name, arguments=sayable(call.arguments)[:_LONGEST_ARGUMENTS]))
    return tuple(made)

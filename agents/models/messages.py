"""Conversion of messages and tool calls between models and histories."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from agents.models.language_model import ModelMessage, ToolCall
from bus_schema.history import ChatMessage, FunctionCall, HistoryToolCall

# What else a model calls in one breath is left out.
MOST_AT_ONCE = 16
_LONGEST_ID = 64
_LONGEST_NAME = 64
_LONGEST_ARGUMENTS = 40_000
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def model_messages(said: Iterable[ChatMessage]) -> list[ModelMessage]:
    """Messages of a history as a model is shown them."""
    return [
        ModelMessage(
            role=each.role,
            content=each.content or "",
            name=each.name,
            tool_calls=tuple(
                ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                for call in each.tool_calls or ()
            ),
            tool_call_id=each.tool_call_id,
        )
        for each in said
    ]


def history_calls(calls: Iterable[ToolCall]) -> tuple[HistoryToolCall, ...]:
    """Calls as a history keeps them."""
    return tuple(
        HistoryToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=call.arguments)) for call in calls
    )


def last_complete(said: Sequence[ChatMessage], most: int) -> tuple[ChatMessage, ...]:
    """The last so many messages, beginning with the user; no result of a tool is cut off from its call."""
    end = list(said[-most:]) if most else []
    while end and end[0].role != "user":
        end.pop(0)
    return tuple(end)


def message_groups(said: Sequence[ModelMessage]) -> list[list[ModelMessage]]:
    """Messages grouped: a tool call with its results, every other message alone."""
    grouped: list[list[ModelMessage]] = []
    for is_result, messages in groupby(said, key=lambda each: each.role == "tool"):
        if is_result and grouped:
            grouped[-1].extend(messages)
        else:
            grouped.extend([each] for each in messages)
    return grouped


def sanitise_text(text: str) -> str:
    """A model's text without NUL and lone surrogates, which no database stores."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def normalise_calls(calls: Sequence[ToolCall], prefix: str) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own by which its result finds it, each with a name."""
    known: set[str] = set()
    made = []
    for number, call in enumerate(calls[:MOST_AT_ONCE]):
        call_id = call.id if 0 < len(call.id) <= _LONGEST_ID and call.id not in known else f"{prefix}_{number}"
        known.add(call_id)
        name = _NOT_IN_A_NAME.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
        made.append(ToolCall(id=call_id, name=name, arguments=sanitise_text(call.arguments)[:_LONGEST_ARGUMENTS]))
    return tuple(made)

"""What models say to each other, in the form in which histories keep it."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from agents.models.language_model import Message, ToolCall
from bus_schema.history import ChatMessage, FunctionCall, HistoryToolCall


def from_history(said: Iterable[ChatMessage]) -> list[Message]:
    """As a model is shown it."""
    return [
        Message(
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


def kept_calls(calls: Iterable[ToolCall]) -> tuple[HistoryToolCall, ...]:
    """Calls as a history keeps them."""
    return tuple(
        HistoryToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=call.arguments)) for call in calls
    )


def whole_end(said: Sequence[ChatMessage], most: int) -> tuple[ChatMessage, ...]:
    """The last so many messages, beginning with the user; no result of a tool is cut off from its call."""
    end = list(said[-most:]) if most else []
    while end and end[0].role != "user":
        end.pop(0)
    return tuple(end)


def blocks(said: Sequence[Message]) -> list[list[Message]]:
    """What belongs together: a call of tools with its results, anything else for itself."""
    grouped: list[list[Message]] = []
    for is_result, messages in groupby(said, key=lambda each: each.role == "tool"):
        if is_result and grouped:
            grouped[-1].extend(messages)
        else:
            grouped.extend([each] for each in messages)
    return grouped

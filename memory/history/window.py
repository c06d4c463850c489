"""The end of a history, in which no tool's result is without its call."""

from collections.abc import Sequence
from typing import TypeVar

from bus_schema.history import ChatMessage

MessageT = TypeVar("MessageT", bound=ChatMessage)
_NOWHERE = -1


def kept_end(messages: Sequence[MessageT], most: int) -> tuple[MessageT, ...]:
    """What is kept where there is room for `most`; a call that would lose its place goes with all its results."""
    if len(messages) <= most:
        return tuple(messages)
    first = len(messages) - most
    calls, _open = _calls_of(messages)
    return tuple(messages[place] for place in range(first, len(messages)) if calls[place] >= first)


def shown_end(messages: Sequence[MessageT], most: int) -> tuple[MessageT, ...]:
    """What a model is shown, who takes no call without all its results, no result without its call."""
    first = max(0, len(messages) - most)
    calls, unanswered = _calls_of(messages)
    places = range(first, len(messages))
    return tuple(messages[place] for place in places if calls[place] >= first and calls[place] not in unanswered)


def _calls_of(messages: Sequence[ChatMessage]) -> tuple[list[int], set[int]]:
    """For each message the place of the call that it goes with, its own if it is no result; the calls left unanswered.

    Results follow their call at once: what comes after another message answers nothing any more.
    """
    calls: list[int] = []
    unanswered: set[int] = set()
    waiting: dict[str, int] = {}
    for place, message in enumerate(messages):
        if message.role == "tool":
            calls.append(waiting.pop(message.tool_call_id or "", _NOWHERE))
            continue
        unanswered.update(waiting.values())
        waiting = {call.id: place for call in message.tool_calls or ()}
        calls.append(place)
    return calls, unanswered | set(waiting.values())

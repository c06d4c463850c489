"""Histories over real stores."""

from typing import Any

from bus_schema.history import FunctionCall, HistoryMessage, HistoryToolCall
from tests.clocks import NOON

KEY = "subagent:analytic:12345"


def said(message_id: str, content: str | None = None, role: str = "user", **fields: Any) -> HistoryMessage:
    """A message as the master writes it down."""
    words = content if content is not None else f"said in {message_id}"
    return HistoryMessage.model_validate({"id": message_id, "role": role, "content": words, "timestamp": NOON} | fields)


def exchange(number: int, results: int = 2) -> list[HistoryMessage]:
    """A task, the call of some tools, what they said, the answer."""
    ids = [f"call-{number}-{place}" for place in range(results)]
    calls = tuple(HistoryToolCall(id=each, function=FunctionCall(name="search", arguments="{}")) for each in ids)
    called = [said(f"{number}-call", role="assistant", content="", tool_calls=calls)] if calls else []
    told = [said(f"{number}-result-{each}", role="tool", tool_call_id=each, name="search") for each in ids]
    return [said(f"{number}-task"), *called, *told, said(f"{number}-answer", role="assistant")]

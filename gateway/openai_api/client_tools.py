"""Tools that a client brings, calls of them and their results, in OpenAI's forms and the dialogue's."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from bus_schema.client_tools import ANY_TOOL, ClientTool, ClientTools, ToolResult, ToolRound
from bus_schema.history import FunctionCall, HistoryToolCall
from bus_schema.replies import Code
from gateway.openai_api.conversation import ClientMessage
from mindbus.errors import Rejected

# The id of a call tells the client's next request which message it goes on with.
_OWN_ID = re.compile(r"call_([0-9]+_[0-9]+)_([A-Za-z0-9_-]{1,64})")


def client_tools(
    tools: Sequence[Mapping[str, Any]] | None, choice: Any, messages: Sequence[ClientMessage]
) -> ClientTools | None:
    """Tools and rounds as the dialogue is told them; None where there are none. Raises Rejected, ValidationError."""
    offered = () if choice == "none" else tuple(map(_tool, tools or ()))
    rounds = _rounds(messages)
    if not offered and not rounds:
        return None
    return ClientTools(tools=offered, choice=_choice(choice), rounds=rounds)


def continued_message(messages: Sequence[ClientMessage], user_id: str) -> str | None:
    """Id of the user's message that results of tools belong to; None where the client brings none."""
    calls = [call for message in _since_user(messages) for call in message.tool_calls or ()]
    if not calls:
        return None
    if own := _OWN_ID.fullmatch(calls[0].id):
        return f"msg_{own[2]}"
    # Called by another model: the talk goes on here.
    return f"msg_{sha256(f'{user_id}/{calls[0].id}'.encode()).hexdigest()[:40]}"


def shown_call(call: HistoryToolCall, message_id: str) -> HistoryToolCall:
    """The call with the id that the client is told."""
    place = call.id.removeprefix("ask_")
    return call.model_copy(update={"id": f"call_{place}_{message_id.removeprefix('msg_')}"})


def _tool(declared: Mapping[str, Any]) -> ClientTool:
    """A function as chat completions declare it, or as responses do."""
    if declared.get("type") != "function":
        raise Rejected(Code.INVALID, f"tools: only functions are called, no {declared.get('type')}")
    function = declared.get("function", declared)
    if not isinstance(function, Mapping):
        raise Rejected(Code.INVALID, "tools: a function is an object with a name and its parameters")
    fields = {name: function[name] for name in ("name", "description", "parameters") if function.get(name) is not None}
    return ClientTool.model_validate(fields)


def _choice(choice: Any) -> str | None:
    if choice in (None, "auto", "none"):
        return None
    if choice == ANY_TOOL:
        return ANY_TOOL
    named = choice.get("function", choice) if isinstance(choice, dict) else None
    if not isinstance(named, dict) or not isinstance(name := named.get("name"), str):
        raise Rejected(Code.INVALID, "tool_choice: none, auto, required, or a function by its name")
    return name


def _since_user(messages: Sequence[ClientMessage]) -> Sequence[ClientMessage]:
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    return messages[last + 1 :]


def _rounds(messages: Sequence[ClientMessage]) -> tuple[ToolRound, ...]:
    since = _since_user(messages)
    results = {message.tool_call_id: message.text for message in since if message.role == "tool"}
    return tuple(
        ToolRound(
            content=message.text,
            calls=tuple(_own_call(call.id, call.function) for call in message.tool_calls),
            results=tuple(
                ToolResult(call_id=_own_id(call.id), content=results[call.id])
                for call in message.tool_calls
                if call.id in results
            ),
        )
        for message in since
        if message.tool_calls
    )


def _own_call(call_id: str, function: FunctionCall) -> HistoryToolCall:
    return HistoryToolCall(id=_own_id(call_id), function=function)


def _own_id(call_id: str) -> str:
    own = _OWN_ID.fullmatch(call_id)
    return f"ask_{own[1]}" if own else call_id

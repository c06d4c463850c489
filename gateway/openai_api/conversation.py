"""Conversation as a client remembers it, and its last words, which are said to the dialogue."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from bus_schema.history import FunctionCall, HistoryToolCall
from bus_schema.replies import Code
from mindbus.errors import Rejected

_TEXTS = frozenset({"text", "input_text", "output_text"})


class Part(BaseModel):
    """A part of a message; only text is heard."""

    model_config = ConfigDict(extra="allow")
    type: str
    text: str = ""


class ClientMessage(BaseModel):
    """A message of the conversation, as the client remembers it."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[HistoryToolCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """Raises Rejected where it has pictures, sounds or files."""
        if not isinstance(self.content, list):
            return self.content or ""
        if other := next((part.type for part in self.content if part.type not in _TEXTS), None):
            raise Rejected(Code.INVALID, f"only text is heard, no {other}; attach files in the web app")
        return "\n".join(part.text for part in self.content)


class FunctionCallItem(BaseModel):
    """A call of a client's tool, as the responses API has it."""

    model_config = ConfigDict(extra="allow")
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class FunctionOutputItem(BaseModel):
    """Result of such a call."""

    model_config = ConfigDict(extra="allow")
    type: Literal["function_call_output"]
    call_id: str
    output: str | list[Part]


def as_messages(items: Sequence[FunctionCallItem | FunctionOutputItem | ClientMessage]) -> list[ClientMessage]:
    """Items of the responses API as messages: calls join the assistant's message before them."""
    messages: list[ClientMessage] = []
    for item in items:
        if isinstance(item, ClientMessage):
            messages.append(item)
        elif isinstance(item, FunctionOutputItem):
            messages.append(ClientMessage(role="tool", content=item.output, tool_call_id=item.call_id))
        else:
            call = HistoryToolCall(id=item.call_id, function=FunctionCall(name=item.name, arguments=item.arguments))
            if not messages or messages[-1].role != "assistant":
                messages.append(ClientMessage(role="assistant"))
            last = messages[-1]
            messages[-1] = last.model_copy(update={"tool_calls": [*(last.tool_calls or ()), call]})
    return messages


def last_words(messages: Sequence[ClientMessage]) -> str:
    """The last words of the user; those before are in the dialogue's own memory. Raises Rejected."""
    said = next((message.text for message in reversed(messages) if message.role == "user"), "")
    if not said.strip():
        raise Rejected(Code.INVALID, "messages: the last one of the user has no text")
    return said


def whole_talk(messages: Sequence[ClientMessage]) -> str:
    """All of it as a text, for a role or a sub-agent, which remembers nothing of it."""
    heard = [message for message in messages if message.text.strip()]
    if len(heard) == 1:
        return heard[0].text
    return "\n\n".join(f"{message.role}: {message.text}" for message in heard)

"""Conversation as a client remembers it, and its last words, which are said to the dialogue."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

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

    @property
    def text(self) -> str:
        """Raises Rejected where it has pictures, sounds or files."""
        if not isinstance(self.content, list):
            return self.content or ""
        if other := next((part.type for part in self.content if part.type not in _TEXTS), None):
            raise Rejected(Code.INVALID, f"only text is heard, no {other}; attach files in the web app")
        return "\n".join(part.text for part in self.content)


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


def refuse_tools(tools: Sequence[Any] | None) -> None:
    """Raises Rejected where a client brings tools of its own."""
    if tools:
        raise Rejected(Code.INVALID, "tools: the assistant uses its own; give it yours as a sub-agent or an MCP server")

"""Commands of the histories: conversations as a model is shown them (spec 001)."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints, model_validator

from bus_schema.artifacts import ArtifactRef
from bus_schema.identities import UserId
from bus_schema.messages import Command, Nothing, Page, Query, Value
from bus_schema.replies import ReplyBatch

MAX_APPENDED = 200
MAX_ADDITIONS = 100
MAX_CONTENT_CHARS = 64_000
MAX_WINDOW = 1000
MAX_CONTEXT_TOKENS = 2_000_000
DEFAULT_CONTEXT_TOKENS = 8192

_CHAT = r"[A-Za-z0-9][A-Za-z0-9_@.-]{0,63}"
_A_KEY = re.compile(rf"(?:chat_history:{_CHAT}|subagent:[a-z0-9][a-z0-9_-]{{0,50}}:{_CHAT})")


def _as_text(chat_id: object) -> object:
    """Accept a chat id given as a number."""
    return str(chat_id) if isinstance(chat_id, int) and not isinstance(chat_id, bool) else chat_id


def is_history_key(text: str) -> bool:
    """Whether a text is a valid history key."""
    return _A_KEY.fullmatch(text) is not None


def _history_key(text: str) -> str:
    if not is_history_key(text):
        raise ValueError("a key is chat_history:{chat_id} or subagent:{name}:{chat_id}")
    return text


ChatId = Annotated[str, BeforeValidator(_as_text), StringConstraints(pattern=rf"^{_CHAT}$")]
SubagentName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,50}$")]
# A chat's number alone stands for the chat's own history, as in spec 001, problem 2.
HistoryKey = Annotated[
    str,
    BeforeValidator(lambda key: f"chat_history:{key}" if isinstance(key, int) and not isinstance(key, bool) else key),
    AfterValidator(_history_key),
]
HistoryMessageId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")]

HistoryVersion = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{0,40}$")]


def chat_key(chat_id: int | str) -> str:
    """Key of the history of the user and the master."""
    return f"chat_history:{chat_id}"


def subagent_key(name: str, chat_id: int | str) -> str:
    """Key of the history of the master and one sub-agent within a chat."""
    return f"subagent:{name}:{chat_id}"


def chat_of(key: str) -> str:
    """The chat id in a key."""
    return key.rsplit(":", 1)[1]


def subagent_of(key: str) -> str | None:
    """The sub-agent name in a key; None for the chat's own history."""
    kind, *between, _chat_id = key.split(":")
    return between[0] if kind == "subagent" else None


def sanitise_text(text: str) -> str:
    """A text of a model or a tool without NUL and lone surrogates, which no database stores."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


class FunctionCall(Value):
    """Tool name and arguments: the JSON text exactly as the model wrote it."""

    name: str = Field(min_length=1, max_length=128)
    arguments: str = Field(max_length=MAX_CONTENT_CHARS)


class HistoryToolCall(Value):
    """A tool call in OpenAI's chat format."""

    id: str = Field(min_length=1, max_length=128)
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(Value):
    """A message in OpenAI's chat format."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = Field(default=None, max_length=MAX_CONTENT_CHARS)
    tool_calls: tuple[HistoryToolCall, ...] | None = Field(default=None, min_length=1, max_length=64)
    tool_call_id: str | None = Field(default=None, min_length=1, max_length=128)
    name: str | None = Field(default=None, min_length=1, max_length=128)

    @model_validator(mode="after")
    def _is_of_its_role(self) -> Self:
        if self.content is None and not self.tool_calls:
            raise ValueError("a message has content, or tool_calls if it is the assistant's")
        if self.tool_calls and self.role != "assistant":
            raise ValueError("only the assistant calls tools")
        if (self.tool_call_id is None) == (self.role == "tool"):
            raise ValueError("tool_call_id is for tool results, each of which has one")
        return self


class HistoryMessage(ChatMessage):
    """A chat message with an id and a timestamp, which the model is not shown."""

    id: HistoryMessageId
    timestamp: AwareDatetime
    ref: ArtifactRef | None = None

    def as_stored(self) -> dict[str, Any]:
        """The message as it is stored: `content` always present, null included, as OpenAI's clients write it."""
        fields = self.model_dump(mode="json")
        return {name: value for name, value in fields.items() if value is not None or name == "content"}


class Appended(Value):
    """The messages are stored; `length` counts all messages under the key.

    `version` is the history's from now on, `preceding` the one before: if you know that one, you know all the messages.
    """

    length: int = Field(ge=0)
    version: HistoryVersion | None = None
    preceding: HistoryVersion | None = None


class HistoryAddition(Value):
    """Messages to be appended to one history."""

    key: HistoryKey
    messages: tuple[HistoryMessage, ...] = Field(min_length=1, max_length=MAX_APPENDED)


class AppendHistory(HistoryAddition, Command[Appended], domain="history", action="append"):
    """Append messages atomically; ids that are already there are skipped."""


class AppendHistories(Command[ReplyBatch], domain="history", action="append_many"):
    """Append to several histories, to each as `append` does; one that fails does not stop the others."""

    additions: tuple[HistoryAddition, ...] = Field(min_length=1, max_length=MAX_ADDITIONS)


class ChatHistory(Value):
    """The last messages of a history; `length` counts all that are stored.

    If a number of tokens was asked for, `message_ids` are the ids of the messages, in the same order, and `version` is
    the history's.
    """

    key: HistoryKey
    messages: tuple[ChatMessage, ...]
    length: int = Field(ge=0)
    message_ids: tuple[HistoryMessageId, ...] | None = None
    version: HistoryVersion | None = None


class GetHistory(Query[ChatHistory], domain="history", action="get"):
    """Read the last messages; they never start with a tool result whose call is cut off, so there may be fewer.

    With `context_tokens`, as many as fit that number of tokens, by estimate, instead of a number of messages.
    """

    key: HistoryKey
    context_window: int | None = Field(default=None, ge=1, le=MAX_WINDOW)
    context_tokens: int | None = Field(default=None, ge=1, le=MAX_CONTEXT_TOKENS)


class StoredHistory(Value):
    """All messages under a key, with ids and timestamps."""

    key: HistoryKey
    messages: tuple[HistoryMessage, ...]


class ShowHistory(Query[StoredHistory], domain="history", action="show"):
    """Read all messages under a key, for people."""

    key: HistoryKey


class HistorySummary(Value):
    """Length and last timestamp of a history; no length if the value is not a readable history."""

    key: HistoryKey
    length: int | None = Field(ge=0)
    last: AwareDatetime | None = None


class HistoryPage(Page[HistorySummary]):
    """Histories in key order with the cursor of the next page."""


class ListHistories(Query[HistoryPage], domain="history", action="list"):
    """List histories, of one chat or of all."""

    chat_id: ChatId | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class ClearHistory(Command[Nothing], domain="history", action="clear"):
    """Delete the history under a key."""

    key: HistoryKey


class RefreshDialogue(Command[Nothing], domain="dialogue", action="refresh"):
    """Reload what is kept of a user's dialogue, or of every dialogue.

    Send it after changing the history of a chat or the items about its user: the next message is answered with it.
    """

    user_id: UserId | None = None

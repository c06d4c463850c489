"""Commands and events of the dialogue agent."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints, model_validator

from bus_schema.artifacts import ArtifactRef, TraceId
from bus_schema.client_tools import ClientTools
from bus_schema.episodes import SearchId
from bus_schema.history import HistoryToolCall
from bus_schema.identities import KemId, UserId
from bus_schema.ids import derived
from bus_schema.message_parts import Attachments, DelegatedTask, MemoryAbsence, ModelUse, Rating, RecalledEpisodes
from bus_schema.messages import Command, Event, Value, require_whole

MAX_MESSAGE_CHARS = 32_000
MAX_PREVIEW_CHARS = 280
MAX_FRAGMENT_MESSAGES = 1_000
HIDDEN_MARK = "[hidden instruction] "


def _sayable(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; say something")
    if len(text) > MAX_MESSAGE_CHARS:
        raise ValueError(
            f"has {len(text)} characters, {MAX_MESSAGE_CHARS} at most; make it an artifact, then send its ref"
        )
    require_whole(text)
    return text


DialogueMessageId = Annotated[str, StringConstraints(pattern=r"^msg_[A-Za-z0-9_-]{1,64}$")]
FragmentId = Annotated[str, StringConstraints(pattern=r"^frag_[A-Za-z0-9_-]{1,64}$")]
NotificationId = Annotated[str, StringConstraints(pattern=r"^ntf_[A-Za-z0-9_-]{1,64}$")]
MessageText = Annotated[
    str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_MESSAGE_CHARS}), AfterValidator(_sayable)
]
Preview = Annotated[str, Field(max_length=MAX_PREVIEW_CHARS)]
KemIds = Annotated[tuple[KemId, ...], Field(max_length=20)]
Role = Literal["user", "assistant"]


class MessageKind(StrEnum):
    """The kind of a message (spec 004 §5.2).

    `native` is ordinary talk; `hidden` is an instruction to the assistant, kept as a message of the user;
    `notification` is what the assistant made of it; `response` is what the user said to that.
    """

    NATIVE = "native"
    HIDDEN = "hidden"
    NOTIFICATION = "notification"
    RESPONSE = "response"

    @property
    def speakers(self) -> tuple[Role, ...]:
        """Roles that may say messages of this kind."""
        return _SPEAKERS[self]


_SPEAKERS: dict[MessageKind, tuple[Role, ...]] = {
    MessageKind.NATIVE: ("user", "assistant"),
    MessageKind.HIDDEN: ("user",),
    MessageKind.NOTIFICATION: ("assistant",),
    MessageKind.RESPONSE: ("user",),
}


def conversation_trace(user_id: str) -> str:
    """Trace id of the dialogue with a user; every user has exactly one dialogue."""
    return f"conv_{user_id}"


def _own_trace(fields: dict[str, str]) -> str:
    return conversation_trace(fields.get("user_id", ""))


class DialogueMessage(Value):
    """Something said by a user or to them, and when; text too long for a message is an artifact.

    An answer was made with the memory units `kem_ids` and with `episodes`, best first; `memory` is set if some memory
    did not answer. `model_use` is missing if no model was asked. `search_id` is the search that found the episodes,
    `rating` the user's opinion of the answer.
    """

    message_id: DialogueMessageId
    user_id: UserId
    role: Role
    kind: MessageKind = MessageKind.NATIVE
    content: MessageText | None = None
    ref: ArtifactRef | None = None
    time: AwareDatetime
    trace_id: TraceId = Field(default_factory=_own_trace)
    kem_ids: KemIds = ()
    episodes: RecalledEpisodes = ()
    memory: MemoryAbsence | None = None
    attachments: Attachments = ()
    model_use: ModelUse | None = None
    search_id: SearchId | None = None
    rating: Rating | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.content is None) == (self.ref is None):
            raise ValueError("a message has either content or a ref to it")
        if self.role not in self.kind.speakers:
            raise ValueError(f"a {self.kind} message is said by the {self.kind.speakers[0]}, not by the {self.role}")
        if self.trace_id != conversation_trace(self.user_id):
            raise ValueError("the trace of a dialogue is conv_ followed by its user's id")
        return self


class Transcript(Value):
    """Content of the artifact that holds a large fragment."""

    messages: tuple[DialogueMessage, ...] = Field(min_length=1, max_length=MAX_FRAGMENT_MESSAGES)


class DialogueFragment(Event, topic="raw", name="dialogue_fragment"):
    """A part of a dialogue is complete: after a silence, at the user's request, or because it grew too large."""

    fragment_id: FragmentId
    user_id: UserId
    message_ids: tuple[DialogueMessageId, ...] = Field(min_length=1, max_length=MAX_FRAGMENT_MESSAGES)
    messages: tuple[DialogueMessage, ...] = ()
    ref: ArtifactRef | None = None
    started_at: AwareDatetime
    ended_at: AwareDatetime
    reason: Literal["timeout", "ended", "size"]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if bool(self.messages) == (self.ref is not None):
            raise ValueError("a fragment has either its messages or a ref to them")
        if self.messages and tuple(message.message_id for message in self.messages) != self.message_ids:
            raise ValueError("message_ids are those of the messages, in their order")
        if any(message.user_id != self.user_id for message in self.messages):
            raise ValueError("a fragment is of one user's dialogue")
        return self

    @property
    def heard(self) -> tuple[DialogueMessage, ...]:
        """Messages of the user's own: no instructions, no notifications, nothing written by an agent."""
        own = (MessageKind.NATIVE, MessageKind.RESPONSE)
        return tuple(each for each in self.messages if each.role == "user" and each.kind in own and each.content)


class DialogueState(Value):
    """State of a dialogue (spec 004 §3.4); the buffer holds the messages not yet in a fragment, oldest first."""

    user_id: UserId
    buffer: tuple[DialogueMessage, ...]
    last_activity: AwareDatetime
    is_active: bool = True


class Answered(Value):
    """The assistant's answer, stored like the message it answers; `kem_ids` are the memory units it used.

    `delegations` are in the order in which the assistant asked for them, failed ones included; `cut_off` means that the
    model did not finish: the answer then ends with a mark. `episodes`, `memory` and `model_use` are the message's.
    With `tool_calls`, it is not an answer yet: send the message again with the asker's results.
    """

    message_id: DialogueMessageId
    response_id: DialogueMessageId
    response: str
    kem_ids: KemIds = ()
    delegations: tuple[DelegatedTask, ...] = ()
    cut_off: bool = False
    episodes: RecalledEpisodes = ()
    memory: MemoryAbsence | None = None
    model_use: ModelUse | None = None
    tool_calls: tuple[HistoryToolCall, ...] = ()


def answer_id_of(message_id: str) -> str:
    """Id of the answer to a user's message."""
    return f"msg_{derived(message_id, 'answer')}"


class Invoke(Command[Answered], domain="dialogue", action="invoke"):
    """Take a user's message and answer it; with `stream` the answer also arrives in parts while it is generated.

    A caller that mints the message's id itself can repeat the command as a new one without being heard twice. Attached
    files are artifacts in the trace of the dialogue; the assistant sees those that are text, under their names.
    With `outlives_asker`, a streamed answer continues even if nobody takes its parts any more.
    """

    user_id: UserId
    message: MessageText | None = None
    ref: ArtifactRef | None = None
    message_id: DialogueMessageId | None = None
    attachments: Attachments = ()
    stream: bool = False
    client_tools: ClientTools | None = None
    outlives_asker: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.message is None) == (self.ref is None):
            raise ValueError("give either a message or a ref to it")
        return self


class AnswerCancelled(Value):
    """Whether the answer was being generated; if so, the part that was ready is kept."""

    cancelled: bool


class CancelAnswer(Command[AnswerCancelled], domain="dialogue", action="cancel"):
    """Stop generating the answer to a message; sent for callers who no longer wait for it."""

    user_id: UserId
    message_id: DialogueMessageId


class Delivered(Value):
    """The assistant has delivered the notification to the user."""

    message_id: DialogueMessageId


class DeliverNotification(Command[Delivered], domain="dialogue", action="deliver_notification"):
    """Have the assistant tell a user something in words that fit the conversation; each id is delivered once."""

    user_id: UserId
    message: str = Field(min_length=1, max_length=8000)
    context: str = Field(default="", max_length=8000)
    notification_id: NotificationId
    merged: tuple[NotificationId, ...] = ()


class Ended(Value):
    """The dialogue is at rest; if there is no fragment, there were no messages to make one from."""

    fragment_id: FragmentId | None = None


class EndDialogue(Command[Ended], domain="dialogue", action="end"):
    """Make a fragment of the buffered messages; the next message starts another.

    With `silent_since`, only if nothing has been said since then, for callers that looked at it before.
    """

    user_id: UserId
    reason: Literal["ended", "timeout"] = "ended"
    silent_since: AwareDatetime | None = None


class ExpiredDialogue(Value):
    """A dialogue whose silence exceeded the timeout."""

    user_id: UserId
    fragment_id: FragmentId


class TimeoutsChecked(Value):
    """The dialogues that this check has ended."""

    expired: tuple[ExpiredDialogue, ...]


class CheckTimeouts(Command[TimeoutsChecked], domain="dialogue", action="check_timeouts"):
    """End every dialogue whose silence exceeds the timeout; tests and simulations pass their own time."""

    timeout_minutes: float | None = Field(default=None, ge=0, le=7 * 24 * 60)
    current_timestamp: AwareDatetime | None = None


class MessageReceived(Event, topic="dialogue", name="message_received"):
    """A user's message was stored; the preview is for people who watch."""

    user_id: UserId
    message_id: DialogueMessageId
    kind: MessageKind
    preview: Preview = ""


class MessageSent(Event, topic="dialogue", name="message_sent"):
    """The assistant has sent a message to a user; `model_tokens` is what it cost, without its sub-agents."""

    user_id: UserId
    message_id: DialogueMessageId
    kind: MessageKind
    in_reply_to: DialogueMessageId | None = None
    preview: Preview = ""
    kem_ids: KemIds = ()
    model_tokens: int = Field(default=0, ge=0)

"""Context of the message being handled, for its handler and the functions that it calls."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bus_schema.envelope import Envelope, Kind
from bus_schema.identities import is_operator, owner_of
from bus_schema.ids import derived
from bus_schema.messages import Message
from bus_schema.replies import Code
from mindbus.errors import Rejected

_current: "ContextVar[MessageContext | None]" = ContextVar("message at hand", default=None)


class PartWriter(Protocol):
    """Writer of the parts of a reply."""

    @property
    def asker_left(self) -> bool: ...

    async def write(self, text: str) -> None: ...


@dataclass(slots=True)
class MessageContext:
    """One handling of one message; ids of the messages that it sends are equal when it is handled again."""

    envelope: Envelope
    consumer: str
    attempt: int = 1
    sent: dict[str, int] = field(default_factory=dict)
    hops: int = field(init=False)
    message: "Message | Envelope | None" = None
    writer: "PartWriter | None" = None

    def __post_init__(self) -> None:
        """Set the hop count of messages sent from here: one more than that of the message."""
        self.hops = self.envelope.mbhops + 1

    def require_operator(self) -> None:
        """Raises Rejected unless the requester is a person or a service: an agent may not maintain others' data."""
        if not is_operator(self.requester):
            raise Rejected(
                Code.UNAUTHORIZED, "this is for people and services, not for agents; ask whoever operates it"
            )

    async def say(self, text: str) -> None:
        """Stream a part of the reply, such as a token; parts are transient, so the result must hold the whole text.

        A `TextPart` that restarts begins the text again.
        """
        if self.writer is not None:
            await self.writer.write(text)

    @property
    def asker_left(self) -> bool:
        """Whether nobody takes the parts of the reply any more."""
        return self.writer is not None and self.writer.asker_left

    def begin_anew(self) -> None:
        """Restart the count of hops, for a flow bounded otherwise, such as by the steps of a card."""
        self.hops = 0

    @property
    def message_id(self) -> str:
        """Id of the message, equal over all attempts and redeliveries."""
        return self.envelope.id

    @property
    def requester(self) -> str:
        """Identity of the requester, with instance."""
        return self.envelope.mbrequester

    @property
    def owner(self) -> str:
        """Identity of the requester without instance."""
        return owner_of(self.envelope.mbrequester)

    @property
    def trace_id(self) -> str | None:
        """The business trace: a run, a conversation."""
        return self.envelope.mbtraceid

    @property
    def step_id(self) -> str | None:
        return self.envelope.mbstepid

    def next_id(self, wire_type: str) -> str:
        """UUIDv5 over the handled message, its consumer, the type, its ordinal among those of the type.

        Each type has its own count: a handler that resumes sends fewer messages on the way, yet the same last one.
        """
        self.sent[wire_type] = ordinal = self.sent.get(wire_type, 0) + 1
        return derived(self.envelope.id, self.consumer, wire_type, ordinal)

    def __enter__(self) -> "MessageContext":
        _current.set(self)
        return self

    def __exit__(self, *_exc: object) -> None:
        _current.set(None)


def deadline_of(envelope: Envelope | None) -> datetime | None:
    """A command's deadline; an event stays true however late it is received."""
    return envelope.expirytime if envelope is not None and envelope.mbkind is Kind.COMMAND else None


def current_message() -> MessageContext | None:
    """The message that the current task handles, or None."""
    return _current.get()

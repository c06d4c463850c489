"""Context of the message that is being handled, for its handler and whatever that calls."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from bus_schema.envelope import Envelope
from bus_schema.identities import is_operator, owner_of
from bus_schema.ids import derived
from bus_schema.messages import Message
from bus_schema.replies import Code
from mindbus.errors import Rejected

_current: "ContextVar[MessageContext | None]" = ContextVar("message at hand", default=None)


@dataclass(slots=True)
class MessageContext:
    """One handling of one message; whatever it sends repeats the same ids when it is handled again."""

    envelope: Envelope
    consumer: str
    attempt: int = 1
    sent: Counter[str] = field(default_factory=Counter)
    hops: int = field(init=False)
    message: "Message | Envelope | None" = None
    write: "Callable[[str], Awaitable[None]] | None" = None

    def __post_init__(self) -> None:
        """Set the hop count of messages sent from here: one more than that of the message."""
        self.hops = self.envelope.mbhops + 1

    def require_operator(self) -> None:
        """Raises Rejected unless a person or a service asks: an agent does not look after what others keep."""
        if not is_operator(self.requester):
            raise Rejected(
                Code.UNAUTHORIZED, "this is for people and services, not for agents; ask whoever operates it"
            )

    async def say(self, text: str) -> None:
        """Stream a part of the answer, such as a token, to the requester; transient, so the result must hold it all."""
        if self.write is not None:
            await self.write(text)

    def begin_anew(self) -> None:
        """Count hops from here: for a story whose length something else bounds, such as a card of so many steps."""
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

        Each type counts for itself: a handler that resumes says less on the way, yet ends with the same message.
        """
        self.sent[wire_type] += 1
        return derived(self.envelope.id, self.consumer, wire_type, self.sent[wire_type])

    def __enter__(self) -> "MessageContext":
        _current.set(self)
        return self

    def __exit__(self, *_exc: object) -> None:
        _current.set(None)


def current_message() -> MessageContext | None:
    """The message that the current task handles, or None."""
    return _current.get()

"""Context of the message being handled, for its handler and the functions that it calls."""

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from bus_schema.envelope import Envelope, Kind
from bus_schema.identities import owner_of, user_of
from bus_schema.ids import derived
from bus_schema.messages import Cause, Message
from mindbus.spans import current_parent

_GRACE = timedelta(hours=2)
_TOLERATED = timedelta(minutes=1)
# Clocks are set now and then, and machines wake up.
_MEASURED_FOR_S = 60.0
_SET = timedelta(seconds=2)
_MOST_SENDERS = 5_000

_current: "ContextVar[MessageContext | None]" = ContextVar("message at hand", default=None)


def _utc_now() -> datetime:
    return datetime.now(UTC)


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
    # Whether an operator asks: as the message's sender has it, or by the settings, which the pipeline knows.
    is_operator: bool = False
    may_operate: bool = True
    # What this process's clock is ahead of the sender's, as far as it is known.
    clock_offset: timedelta = timedelta()

    def __post_init__(self) -> None:
        """Set the hop count of messages sent from here: one more than that of the message."""
        self.hops = self.envelope.mbhops + 1

    @property
    def cause(self) -> Cause:
        """The message as the cause of what a part of another command leads to."""
        parent = current_parent(self.envelope)
        return Cause(
            correlation_id=self.envelope.correlationid,
            hops=self.hops + 1,
            traceparent=parent.traceparent,
            tracestate=parent.tracestate,
        )

    def acts_for(self, user_id: str | None) -> str | None:
        """Whom the message is about: the person who asks, or whom an operator or a worker names; None: everybody."""
        person = user_of(self.requester)
        return user_id if self.is_operator or person is None else person

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
    def deadline(self) -> datetime | None:
        """Time by which the asker wants the reply, on this process's clock."""
        expiry = _expiry_of(self.envelope)
        return None if expiry is None else self.on_own_clock(expiry)

    def on_own_clock(self, moment: datetime) -> datetime:
        """A time of the sender's clock, on this process's."""
        return moment + self.clock_offset

    @property
    def message_id(self) -> str:
        """Id of the message, equal over all attempts and redeliveries."""
        return self.envelope.id

    @property
    def requester(self) -> str:
        """Identity for whom it is asked, with instance."""
        return self.envelope.requester

    @property
    def owner(self) -> str:
        """Identity of the requester without instance."""
        return owner_of(self.envelope.requester)

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


def _expiry_of(envelope: Envelope | None) -> datetime | None:
    return envelope.expirytime if envelope is not None and envelope.mbkind is Kind.COMMAND else None


class ClockOffsets:
    """Offsets between this process's clock and those of senders: the least time that a message has taken of late.

    A deadline is a time on the sender's clock, so it is compared with that. Of whom nothing else has come within a
    minute or two, it is unknown how long the message at hand has waited.
    """

    def __init__(
        self, clock: Callable[[], datetime] = _utc_now, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock, self._monotonic = clock, monotonic
        self._current: dict[str, timedelta] = {}
        self._former: dict[str, timedelta] = {}
        self._turns_at, self._began = 0.0, clock() - timedelta(seconds=monotonic())

    def note(self, envelope: Envelope) -> timedelta:
        """Measure a message that has just come; the offset of its sender, at most what this message says."""
        self._turn()
        source, took = envelope.source, self._clock() - envelope.time
        self._current[source] = min(took, self._current.get(source, took))
        return self._known(source)

    def deadline_of(self, envelope: Envelope | None) -> datetime | None:
        """A command's deadline on this process's clock; an event stays true however late it is received.

        Where the offset is unknown, it is none that has passed less than two hours ago.
        """
        expiry = _expiry_of(envelope)
        if envelope is None or expiry is None:
            return None
        is_known = self._known(envelope.source) < timedelta.max
        offset = self.note(envelope)
        return expiry + offset if is_known or self._clock() <= expiry + _GRACE else expiry

    def wrong_clock(self) -> str:
        """The participant whose clock is ahead by more than a minute, with that time; empty where there is none."""
        ahead = {source: -offset for source, offset in (self._former | self._current).items() if -offset > _TOLERATED}
        source = max(ahead, key=ahead.__getitem__, default="")
        if not source:
            return ""
        return (
            f"the clock of {source} is {ahead[source].total_seconds():.0f} s ahead of this one: set the clocks by NTP"
        )

    def _known(self, source: str) -> timedelta:
        return min(self._current.get(source, timedelta.max), self._former.get(source, timedelta.max))

    def _turn(self) -> None:
        began = self._clock() - timedelta(seconds=self._monotonic())
        if abs(began - self._began) > _SET:
            # This clock has been set: all that was measured is void.
            self._current, self._former, self._began = {}, {}, began
        if self._monotonic() >= self._turns_at or len(self._current) >= _MOST_SENDERS:
            self._former, self._current = self._current, {}
            self._turns_at = self._monotonic() + _MEASURED_FOR_S


def current_message() -> MessageContext | None:
    """The message that the current task handles, or None."""
    return _current.get()


def sent_at(clock: Callable[[], datetime] = _utc_now) -> datetime:
    """The time of sending of the message at hand, equal in all repetitions; that of the clock where there is none."""
    at_hand = current_message()
    return at_hand.envelope.time if at_hand else clock()

"""Inbox of a worker: the messages that it has handled, with what each caused, so that a duplicate has no effect."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, Self

from bus_schema.envelope import from_wire
from mindbus.bus.transport import Outgoing, Transport

_REMEMBERED_S = 3600.0

Outcomes = Mapping[str, Sequence[Outgoing]]


class UnitOfWork(Protocol):
    """One open transaction over the effects of a group of messages."""

    async def record(self, outcomes: Outcomes) -> None:
        """Record the outcome of each message of the group by id, so that a duplicate repeats it."""

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Record messages without a cause, such as those of a periodic task."""


class Inbox(Protocol):
    """Recognises messages that were handled before, by their ids."""

    @property
    def publishes(self) -> bool:
        """Whether it survives its process, and sends what a task recorded by itself, from an outbox."""

    @property
    def trouble(self) -> str:
        """Reason why what it has recorded is not published; empty where it is."""

    @property
    def note(self) -> str:
        """Something in it that somebody has to look at, though it works; empty where there is nothing."""

    @property
    def damage(self) -> str:
        """Description of the damage to what it has recorded; empty where it is sound."""

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """The outcomes of those messages that have been handled."""

    def unit_of_work(self, consumer: str) -> AbstractAsyncContextManager[UnitOfWork]:
        """Open a unit of work: everything inside takes effect on leaving, with what was recorded, or not at all."""

    def mark_published(self, consumer: str, message_id: str) -> None:
        """Note that everything which a recorded message caused has been published."""

    async def postpone(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        """Send those of what a recorded message caused that nobody takes yet later; the rest has been published."""

    async def start(self, transport: Transport) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Remembered:
    """When a message was handled, and what it caused, as bytes: an envelope takes four times as much."""

    at: float
    sent: tuple[tuple[str, str, bytes, bool, bool], ...]

    @classmethod
    def of(cls, at: float, outgoing: Iterable[Outgoing]) -> Self:
        return cls(
            at, tuple((each.exchange, each.routing_key, each.body, each.mandatory, each.transient) for each in outgoing)
        )

    @property
    def size(self) -> int:
        return sum(len(body) for _, _, body, _, _ in self.sent)

    def outgoing(self) -> tuple[Outgoing, ...]:
        return tuple(
            Outgoing(exchange, key, from_wire(body), body, mandatory, transient)
            for exchange, key, body, mandatory, transient in self.sent
        )


class MemoryInbox:
    """Inbox of a worker without a database: bounded in messages, bytes and age, and lost with the process.

    So the effects of its handlers must be repeatable.
    """

    publishes = False
    trouble = note = damage = ""

    def __init__(self, size: int = 10_000, most_bytes: int = 32 * 2**20) -> None:
        # By consumer and id, oldest first. It is on the way of every message: a TTLCache takes thrice as long.
        self._handled: OrderedDict[tuple[str, str], _Remembered] = OrderedDict()
        self._size, self._most_bytes, self._bytes = size, most_bytes, 0

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """The outcomes of those messages, as long as they are remembered."""
        found = {each: self._handled.get((consumer, each)) for each in message_ids}
        return {message_id: kept.outgoing() for message_id, kept in found.items() if kept is not None}

    def unit_of_work(self, consumer: str) -> "_MemoryUnit":
        """Remember the outcomes once everything went well."""
        return _MemoryUnit(self, consumer)

    def remember(self, consumer: str, outcomes: Outcomes) -> None:
        """Answer the duplicates of these messages with these outcomes from now on."""
        now = monotonic()
        for message_id, outgoing in outcomes.items():
            self._forget(self._handled.pop((consumer, message_id), None))
            kept = self._handled[consumer, message_id] = _Remembered.of(now, outgoing)
            self._bytes += kept.size
        while self._handled and self._holds_too_much(now):
            self._forget(self._handled.popitem(last=False)[1])

    def _holds_too_much(self, now: float) -> bool:
        oldest = next(iter(self._handled.values()))
        return len(self._handled) > self._size or self._bytes > self._most_bytes or oldest.at < now - _REMEMBERED_S

    def _forget(self, kept: "_Remembered | None") -> None:
        self._bytes -= kept.size if kept is not None else 0

    def mark_published(self, consumer: str, message_id: str) -> None:
        """Nothing to mark: what was not published is lost with the process."""

    async def postpone(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        """Not for an inbox that does not publish: the runtime tries on by itself."""
        raise TypeError("nothing can be left to an inbox in memory")

    async def start(self, transport: Transport) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""


class _MemoryUnit:
    def __init__(self, inbox: MemoryInbox, consumer: str) -> None:
        self._inbox, self._consumer = inbox, consumer
        self._outcomes: dict[str, Sequence[Outgoing]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind is None:
            self._inbox.remember(self._consumer, self._outcomes)

    async def record(self, outcomes: Outcomes) -> None:
        self._outcomes.update(outcomes)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Nothing to keep: the runtime publishes it."""

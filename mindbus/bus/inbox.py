"""Inbox of a worker: the messages that it has handled, with what each caused, so that a duplicate has no effect."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Protocol, Self

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


class MemoryInbox:
    """Inbox of a worker without a database: bounded, lost with the process, so effects must be repeatable."""

    publishes = False
    trouble = note = damage = ""

    def __init__(self, size: int = 10_000) -> None:
        # Time and outcome by consumer and id, oldest first. It is on the way of every message: a TTLCache takes thrice
        # as long.
        self._handled: OrderedDict[tuple[str, str], tuple[float, Sequence[Outgoing]]] = OrderedDict()
        self._size = size

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """The outcomes of those messages, as long as they are remembered."""
        outcomes: dict[str, Sequence[Outgoing]] = {}
        for message_id in message_ids:
            if handled := self._handled.get((consumer, message_id)):
                outcomes[message_id] = handled[1]
        return outcomes

    def unit_of_work(self, consumer: str) -> "_MemoryUnit":
        """Remember the outcomes once everything went well."""
        return _MemoryUnit(self, consumer)

    def remember(self, consumer: str, outcomes: Outcomes) -> None:
        """Answer the duplicates of these messages with these outcomes from now on."""
        now = monotonic()
        for message_id, outgoing in outcomes.items():
            self._handled[consumer, message_id] = now, outgoing
        while self._handled and (len(self._handled) > self._size or self._oldest() < now - _REMEMBERED_S):
            self._handled.popitem(last=False)

    def _oldest(self) -> float:
        return next(iter(self._handled.values()))[0]

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

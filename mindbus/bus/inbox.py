"""Inbox of a worker: the messages that it has handled, with what each caused, so that a duplicate has no effect."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Protocol

from cachetools import TTLCache

from mindbus.bus.transport import Outgoing, Transport

REMEMBERED = timedelta(hours=1)

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
        """Whether it sends what was recorded by itself, from an outbox."""

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """The outcomes of those messages that have been handled."""

    def unit_of_work(self, consumer: str) -> AbstractAsyncContextManager[UnitOfWork]:
        """Open a unit of work: everything inside takes effect on leaving, with what was recorded, or not at all."""

    async def start(self, transport: Transport) -> None: ...

    async def stop(self) -> None: ...


class MemoryInbox:
    """Inbox of a worker without a database: bounded, lost with the process, so effects must be repeatable."""

    publishes = False

    def __init__(self, size: int = 10_000) -> None:
        self._outcomes: TTLCache[tuple[str, str], Sequence[Outgoing]] = TTLCache(size, REMEMBERED.total_seconds())

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """The outcomes of those messages, as long as they are remembered."""
        known = {message_id: self._outcomes.get((consumer, message_id)) for message_id in message_ids}
        return {message_id: outgoing for message_id, outgoing in known.items() if outgoing is not None}

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator["_MemoryUnit"]:
        """Record the outcomes on success."""
        unit = _MemoryUnit()
        yield unit
        self._outcomes.update({(consumer, message_id): caused for message_id, caused in unit.outcomes.items()})

    async def start(self, transport: Transport) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""


class _MemoryUnit:
    def __init__(self) -> None:
        self.outcomes: dict[str, Sequence[Outgoing]] = {}

    async def record(self, outcomes: Outcomes) -> None:
        self.outcomes.update(outcomes)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Nothing to keep: the runtime publishes it."""

"""What a worker remembers of the messages that it has handled."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self

from cachetools import TTLCache

from mindbus.bus.transport import Outgoing, Transport

REMEMBERED = timedelta(hours=1)


class UnitOfWork(Protocol):
    """One message's line in the inbox, still open."""

    async def record(self, outgoing: Sequence[Outgoing]) -> None:
        """Keep what the message caused, so that its duplicate causes just that again."""


class Inbox(Protocol):
    """Recognises a message that was handled before, by its id."""

    @property
    def publishes(self) -> bool:
        """Whether it sends what was recorded by itself, from an outbox."""

    async def outcome_of(self, consumer: str, message_id: str) -> Sequence[Outgoing] | None: ...

    def entry(self, consumer: str, message_id: str | None) -> AbstractAsyncContextManager[UnitOfWork]:
        """Open a line: what happens inside takes effect on leaving, together with the record, or not at all.

        Without a message id, as for what a clock sets off, there is an effect but nothing to recognise again.
        """

    async def start(self, transport: Transport) -> None: ...

    async def stop(self) -> None: ...


class MemoryInbox:
    """For workers without a database: bounded, forgets with the process, so effects must be repeatable."""

    publishes = False

    def __init__(self, size: int = 10_000) -> None:
        self._outcomes: TTLCache[tuple[str, str], Sequence[Outgoing]] = TTLCache(size, REMEMBERED.total_seconds())

    async def outcome_of(self, consumer: str, message_id: str) -> Sequence[Outgoing] | None:
        """What the message caused, as long as it is remembered."""
        return self._outcomes.get((consumer, message_id))

    def entry(self, consumer: str, message_id: str | None) -> "_MemoryEntry":
        """Remember the outcome once everything went well."""
        return _MemoryEntry(self, consumer, message_id)

    def remember(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        """From now on, a duplicate of the message has this outcome."""
        self._outcomes[consumer, message_id] = outgoing

    async def start(self, transport: Transport) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""


class _MemoryEntry:
    def __init__(self, inbox: MemoryInbox, consumer: str, message_id: str | None) -> None:
        self._inbox, self._consumer, self._message_id = inbox, consumer, message_id
        self._outgoing: Sequence[Outgoing] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is None and self._outgoing is not None and self._message_id is not None:
            self._inbox.remember(self._consumer, self._message_id, self._outgoing)

    async def record(self, outgoing: Sequence[Outgoing]) -> None:
        self._outgoing = outgoing

"""What a worker remembers of the messages that it has handled."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Protocol

from cachetools import TTLCache

from mindbus.bus.transport import Outgoing, Transport

REMEMBERED = timedelta(hours=1)


class Entry(Protocol):
    """One message's line in the ledger, still open."""

    async def record(self, outgoing: Sequence[Outgoing]) -> None:
        """Keep what the message caused, so that its duplicate causes just that again."""


class Ledger(Protocol):
    """Recognises a message that was handled before, by its id."""

    @property
    def publishes(self) -> bool:
        """Whether it sends what was recorded by itself, from an outbox."""

    async def outcome_of(self, consumer: str, message_id: str) -> Sequence[Outgoing] | None: ...

    def entry(self, consumer: str, message_id: str | None) -> AbstractAsyncContextManager[Entry]:
        """Open a line: what happens inside takes effect on leaving, together with the record, or not at all.

        Without a message id, as for what a clock sets off, there is an effect but nothing to recognise again.
        """

    async def start(self, transport: Transport) -> None: ...

    async def stop(self) -> None: ...


class MemoryLedger:
    """For workers without a database: bounded, forgets with the process, so effects must be repeatable."""

    publishes = False

    def __init__(self, size: int = 10_000) -> None:
        self._outcomes: TTLCache[tuple[str, str], Sequence[Outgoing]] = TTLCache(size, REMEMBERED.total_seconds())

    async def outcome_of(self, consumer: str, message_id: str) -> Sequence[Outgoing] | None:
        """What the message caused, as long as it is remembered."""
        return self._outcomes.get((consumer, message_id))

    @asynccontextmanager
    async def entry(self, consumer: str, message_id: str | None) -> AsyncIterator["_MemoryEntry"]:
        """Remember the outcome once everything went well."""
        entry = _MemoryEntry()
        yield entry
        if entry.outgoing is not None and message_id is not None:
            self._outcomes[consumer, message_id] = entry.outgoing

    async def start(self, transport: Transport) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""


class _MemoryEntry:
    outgoing: Sequence[Outgoing] | None = None

    async def record(self, outgoing: Sequence[Outgoing]) -> None:
        self.outgoing = outgoing

"""Storage's database in memory: transactions one after the other, as SQLite's are, whole or not at all."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from bus_schema.artifacts import Manifest
from mindbus.bus.transport import Outgoing
from mindbus.errors import TemporaryFailure
from mindbus.files.keys import object_key
from storage_service.maintenance.manifest_copies import ManifestCopy
from storage_service.maintenance.registry import Notification, Removal
from storage_service.tables import GONE
from tests.crashes.gates import Gates

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Blob:
    """A row of `blobs`."""

    generation: int = 0
    state: str = GONE
    size_bytes: int | None = None
    pinned_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `artifact_manifests`."""

    manifest: Manifest
    logical_id: str
    generation: int
    position: int
    committed_at: datetime
    retention_until: datetime | None
    expired_at: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether its time is over, and nobody has seen to that yet."""
        return self.expired_at is None and self.retention_until is not None and self.retention_until <= now

    @property
    def copy(self) -> ManifestCopy:
        """All that is known of it."""
        return ManifestCopy(
            manifest=self.manifest,
            logical_id=self.logical_id,
            generation=self.generation,
            committed_at=self.committed_at,
            expired_at=self.expired_at,
        )

    @property
    def object_key(self) -> str:
        """Where its bytes must be."""
        return object_key(self.manifest.sha256, self.generation)


@dataclass(slots=True)
class Tables:
    """All that is committed; the values never change, so that a copy of the dictionaries is a copy of it all."""

    manifests: dict[str, Row] = field(default_factory=dict)
    blobs: dict[str, Blob] = field(default_factory=dict)
    spent: dict[str, str] = field(default_factory=dict)
    inbox: dict[str, Sequence[Outgoing]] = field(default_factory=dict)
    unpublished: dict[str, Sequence[Outgoing]] = field(default_factory=dict)
    outbox: dict[int, Outgoing] = field(default_factory=dict)
    removals: dict[str, Removal] = field(default_factory=dict)
    notices: dict[int, Notification] = field(default_factory=dict)
    marks: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    drawn: int = 0

    def copy(self) -> "Tables":
        """For a transaction to write in."""
        return Tables(
            manifests=dict(self.manifests),
            blobs=dict(self.blobs),
            spent=dict(self.spent),
            inbox=dict(self.inbox),
            unpublished=dict(self.unpublished),
            outbox=dict(self.outbox),
            removals=dict(self.removals),
            notices=dict(self.notices),
            marks=dict(self.marks),
            drawn=self.drawn,
        )

    def holders(self, sha256: str, generation: int) -> list[Row]:
        """The artifacts that have these bytes."""
        return [
            row
            for row in self.manifests.values()
            if (row.manifest.sha256, row.generation) == (sha256, generation) and row.expired_at is None
        ]


class MemoryDatabase:
    """What outlives every process; one transaction writes at a time, nobody sees its rows before it commits."""

    def __init__(self) -> None:
        self.committed = Tables()
        self.writer = asyncio.Lock()


@dataclass(slots=True)
class Transaction:
    """The transaction of the message at hand; like a real one, it begins with its first statement."""

    database: MemoryDatabase
    draft: Tables | None = None

    async def tables(self) -> Tables:
        """What it has written so far over what was committed when it began."""
        if self.draft is None:
            await self.database.writer.acquire()
            self.draft = self.database.committed.copy()
        return self.draft

    def commit(self) -> None:
        """All of it is true from now on."""
        assert self.draft is not None
        self.database.committed = self.draft
        self.end()

    def end(self) -> None:
        """Let the next one begin."""
        if self.draft is not None:
            self.draft = None
            self.database.writer.release()


_at_hand: "ContextVar[Transaction]" = ContextVar("transaction of the message at hand")


def at_hand() -> Transaction:
    """The transaction of the message at hand."""
    return _at_hand.get()


def _away() -> TemporaryFailure:
    return TemporaryFailure("the database is away")


class Connection:
    """One process's way to the database."""

    def __init__(self, database: MemoryDatabase, gates: Gates) -> None:
        self.database, self.gates = database, gates

    async def read(self) -> Tables:
        """What is committed just now."""
        return await self.gates.effect("select", lambda: self.database.committed, _away)

    async def write(self, name: str, change: Callable[[Tables], T]) -> T:
        """A short transaction of its own."""
        await self.gates.stop_at(f"before commit of {name}", _away)
        async with self.database.writer:
            draft = self.database.committed.copy()
            result = change(draft)
            self.database.committed = draft
        self.gates.look()
        await self.gates.stop_at(f"after commit of {name}", _away)
        return result

    @asynccontextmanager
    async def ambient(self) -> AsyncIterator[Transaction]:
        """The transaction of the message at hand."""
        transaction = Transaction(self.database)
        token = _at_hand.set(transaction)
        try:
            yield transaction
            if transaction.draft is not None:
                await self.gates.effect("commit", transaction.commit, _away)
        finally:
            _at_hand.reset(token)
            transaction.end()

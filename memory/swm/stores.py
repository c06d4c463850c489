"""Locks: who holds them, until when."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from bus_schema.swm import Lock, LockInfo

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class LockRequest:
    """Somebody wants a lock; the same ticket gets the same lock, however often it is asked for."""

    name: str
    holder: str
    lease: timedelta
    ticket: str


class LockStore(Protocol):
    """Keeps locks through any crash. All of it raises CoordinationAway, or DatabaseAway."""

    async def take(self, want: LockRequest) -> Lock | datetime:
        """The lock, else when its holder has to let go at the latest."""

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        """Raises LockLost."""

    async def release(self, name: str, token: str) -> None:
        """Twice is as good as once. Raises LockLost where the lease had ended before."""

    async def info(self, name: str) -> LockInfo: ...


MAX_VALUE = 2**53


@dataclass(frozen=True, slots=True)
class Addition:
    """So much is to be added; the same operation is made once, however often it is asked for."""

    name: str
    by: int
    operation_id: str


class CounterStore(Protocol):
    """Keeps counters through any crash. All of it raises CoordinationAway, or DatabaseAway."""

    async def add(self, addition: Addition) -> int:
        """What the counter stood at after it. Raises CounterFull."""

    async def value(self, name: str) -> int: ...

    async def forget_old(self) -> None:
        """Operations that nobody repeats any more."""

    async def clear(self) -> int:
        """Have them all begin anew; how many there were."""

"""Interfaces of the stores of locks and counters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from bus_schema.swm import Lock, LockInfo

Clock = Callable[[], datetime]

# Counters stay within what a double holds exactly, as Redis' Lua and JSON need.
MAX_VALUE = 2**53
# How long an operation is known, so that a repetition is not counted again.
OPERATIONS_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LockRequest:
    """Request for a lock; requests with the same ticket get the same lock."""

    name: str
    holder: str
    lease: timedelta
    ticket: str


class LockStore(Protocol):
    """Durable locks. All methods raise CoordinationAway or DatabaseAway."""

    async def take(self, request: LockRequest) -> Lock | datetime:
        """The lock, or the time at which its holder's lease ends."""

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        """Raises LockNotHeld."""

    async def release(self, name: str, token: str) -> None:
        """Idempotent. Raises LockNotHeld where the lease had ended before."""

    async def info(self, name: str) -> LockInfo: ...


@dataclass(frozen=True, slots=True)
class Addition:
    """Amount to be added to a counter, once per operation."""

    name: str
    by: int
    operation_id: str


class CounterStore(Protocol):
    """Durable counters. All methods raise CoordinationAway or DatabaseAway."""

    async def add(self, addition: Addition) -> int:
        """Value after the addition. Raises CounterFull."""

    async def value(self, name: str) -> int: ...

    async def forget_old(self) -> None:
        """Delete operations that nobody repeats any more."""

    async def clear(self) -> int:
        """Delete all counters; returns their number."""

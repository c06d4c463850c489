"""Locks: who holds them, until when."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from bus_schema.swm import Lock, LockInfo

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Want:
    """Somebody wants a lock; the same ticket gets the same lock, however often it is asked for."""

    name: str
    holder: str
    lease: timedelta
    ticket: str


class LockStore(Protocol):
    """Keeps locks through any crash. All of it raises CoordinationAway, or DatabaseAway."""

    async def take(self, want: Want) -> Lock | datetime:
        """The lock, else when its holder has to let go at the latest."""

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        """Raises LockLost."""

    async def release(self, name: str, token: str) -> None:
        """Twice is as good as once. Raises LockLost where the lease had ended before."""

    async def info(self, name: str) -> LockInfo: ...

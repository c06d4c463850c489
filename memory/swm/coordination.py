"""Coordination: interface of the stores of locks and counters, and the fair queue for locks."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from bus_schema.swm import Lock, LockInfo
from memory.errors import LockNotFree, TooManyWait

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


class CoordinationStore(Protocol):
    """Durable locks and counters. All methods raise CoordinationAway or DatabaseAway."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def take(self, request: LockRequest) -> Lock | datetime:
        """The lock, or the time at which its holder's lease ends."""

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        """Raises LockNotHeld."""

    async def release(self, name: str, token: str) -> None:
        """Idempotent. Raises LockNotHeld where the lease had ended before."""

    async def lock_info(self, name: str) -> LockInfo: ...

    async def add(self, counter: str, by: int, operation_id: str) -> int:
        """Value after the addition, which is made once per operation. Raises CounterFull."""

    async def value(self, counter: str) -> int: ...

    async def forget_old(self) -> None:
        """Delete operations that nobody repeats any more."""

    async def clear_counters(self) -> int:
        """Delete all counters; returns their number."""


MAX_WAITING = 400
# A lease may end earlier than known: its holder releases it, or the clock is set.
_RETRY_WITHIN_S = 0.2


class LockQueue:
    """A FIFO queue per lock in the instance that leads: the first tries the lock, the others wait.

    A message that was waiting when its instance died is redelivered and queues anew.
    """

    def __init__(self, store: CoordinationStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._queues: dict[str, deque[asyncio.Event]] = {}

    def waiting(self, name: str) -> int:
        return len(self._queues.get(name, ()))

    async def acquire(self, request: LockRequest, until: datetime) -> Lock:
        """Raises LockNotFree if the lock is not acquired by then, TooManyWait."""
        if sum(map(len, self._queues.values())) >= MAX_WAITING:
            raise TooManyWait(name=request.name)
        turn = asyncio.Event()
        queue = self._queues.setdefault(request.name, deque())
        queue.append(turn)
        try:
            return await self._in_turn(request, turn, queue, until)
        finally:
            queue.remove(turn)
            if queue:
                queue[0].set()
            else:
                del self._queues[request.name]

    def notify_release(self, name: str) -> None:
        """Let the first in the queue try: the lock is free."""
        if queue := self._queues.get(name):
            queue[0].set()

    async def _in_turn(
        self, request: LockRequest, turn: asyncio.Event, queue: deque[asyncio.Event], until: datetime
    ) -> Lock:
        while True:
            turn.clear()
            retry_s = (until - self._clock()).total_seconds()
            if queue[0] is turn:
                outcome = await self._store.take(request)
                if isinstance(outcome, Lock):
                    return outcome
                left_s = (outcome - self._clock()).total_seconds()
                retry_s = min(retry_s, max(left_s, 0), _RETRY_WITHIN_S)
            if self._clock() >= until:
                raise LockNotFree(name=request.name)
            with suppress(TimeoutError):
                async with asyncio.timeout(retry_s):
                    await turn.wait()

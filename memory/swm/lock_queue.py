"""Fair queueing for locks."""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import datetime

from bus_schema.swm import Lock
from memory.swm.errors import LockNotFree, TooManyWait
from memory.swm.stores import Clock, LockRequest, LockStore

MAX_WAITING = 400
# A lease may end earlier than known: its holder releases it, or the clock is set.
_RETRY_WITHIN_S = 0.2


class LockQueue:
    """A FIFO queue per lock in the instance that leads: the first tries the lock, the others wait.

    A message that was waiting when its instance died is redelivered and queues anew.
    """

    def __init__(self, locks: LockStore, clock: Clock) -> None:
        self._locks, self._clock = locks, clock
        self._queues: dict[str, deque[asyncio.Event]] = {}

    def waiting(self, name: str) -> int:
        """Number of requests that wait for the lock."""
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

    def released(self, name: str) -> None:
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
                taken = await self._locks.take(request)
                if isinstance(taken, Lock):
                    return taken
                left_s = (taken - self._clock()).total_seconds()
                retry_s = min(retry_s, max(left_s, 0), _RETRY_WITHIN_S)
            if self._clock() >= until:
                raise LockNotFree(name=request.name)
            with suppress(TimeoutError):
                async with asyncio.timeout(retry_s):
                    await turn.wait()

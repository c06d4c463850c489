"""Whoever waits for a lock gets it in turn."""

import asyncio
from collections import deque
from contextlib import suppress
from datetime import datetime

from bus_schema.swm import Lock
from memory.swm.errors import LockNotFree, TooManyWait
from memory.swm.stores import Clock, LockRequest, LockStore

MAX_WAITING = 400
# A lease may end sooner than it seemed: its holder lets go, or time is set.
_LOOK_AGAIN_S = 0.2


class LockQueue:
    """The queues before locks, in the one instance that leads: whoever is first asks, the others wait for their turn.

    A message that was waiting when its instance died comes again, to wait with the next one.
    """

    def __init__(self, locks: LockStore, clock: Clock) -> None:
        self._locks, self._clock = locks, clock
        self._lines: dict[str, deque[asyncio.Event]] = {}

    def waiting(self, name: str) -> int:
        """How many wait for it."""
        return len(self._lines.get(name, ()))

    async def acquire(self, want: LockRequest, until: datetime) -> Lock:
        """Raises LockNotFree where it is not this one's turn by then, TooManyWait."""
        if sum(map(len, self._lines.values())) >= MAX_WAITING:
            raise TooManyWait(name=want.name)
        turn = asyncio.Event()
        line = self._lines.setdefault(want.name, deque())
        line.append(turn)
        try:
            return await self._in_turn(want, turn, line, until)
        finally:
            line.remove(turn)
            if line:
                line[0].set()
            else:
                del self._lines[want.name]

    def left(self, name: str) -> None:
        """The lock is free: the first in line may look."""
        if line := self._lines.get(name):
            line[0].set()

    async def _in_turn(
        self, want: LockRequest, turn: asyncio.Event, line: deque[asyncio.Event], until: datetime
    ) -> Lock:
        while True:
            turn.clear()
            look_again_s = (until - self._clock()).total_seconds()
            if line[0] is turn:
                taken = await self._locks.take(want)
                if isinstance(taken, Lock):
                    return taken
                left_s = (taken - self._clock()).total_seconds()
                look_again_s = min(look_again_s, max(left_s, 0), _LOOK_AGAIN_S)
            if self._clock() >= until:
                raise LockNotFree(name=want.name)
            with suppress(TimeoutError):
                async with asyncio.timeout(look_again_s):
                    await turn.wait()

"""Keeps a lease for as long as a block of code runs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from mindbus.errors import ReplyError
from mindbus.logs import logger
from mindbus.sdk.memory_failures import LockLost, MemoryAway
from mindbus.tasks import end

# Renewed when so much of it has passed, there is time to try again.
RENEWED_AFTER = 1 / 3
_AGAIN_AFTER = 1 / 20


@asynccontextmanager
async def kept(renew: Callable[[], Awaitable[object]], lease_s: float, asked_at: float) -> AsyncIterator[None]:
    """Renew the lease until the block ends; where it ends before, the block is cancelled. Raises LockLost.

    Times are those of the loop's clock: a lease began no earlier than it was asked for, whatever other clocks say.
    """
    lease = _Lease(renew, lease_s, asked_at + lease_s)
    if asyncio.get_running_loop().time() > asked_at + lease_s * RENEWED_AFTER:
        # It was waited for, so that nobody here knows since when it has been held.
        await lease.renew()
    ending = asyncio.timeout_at(lease.until)
    try:
        async with ending:
            keeping = asyncio.create_task(lease.keep(ending), name="lease")
            try:
                yield
            finally:
                await end(keeping)
    except TimeoutError as late:
        if ending.expired():
            raise LockLost(LockLost.__doc__) from late
        raise


class _Lease:
    def __init__(self, renew: Callable[[], Awaitable[object]], lease_s: float, until: float) -> None:
        self._renew, self._lease_s, self.until = renew, lease_s, until

    async def renew(self) -> None:
        began = asyncio.get_running_loop().time()
        try:
            await self._renew()
        except MemoryAway:
            raise
        except ReplyError as lost:
            raise LockLost(LockLost.__doc__) from lost
        self.until = began + self._lease_s

    async def keep(self, ending: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        pause_s = self.until - self._lease_s * (1 - RENEWED_AFTER) - loop.time()
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self._lease_s * RENEWED_AFTER
            try:
                await self.renew()
            except MemoryAway as away:
                logger().warning("lease not renewed yet", reason=str(away))
                pause_s = self._lease_s * _AGAIN_AFTER
            except LockLost:
                ending.reschedule(loop.time())
                return
            else:
                ending.reschedule(self.until)

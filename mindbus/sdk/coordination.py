"""Distributed locks and counters."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypedDict, Unpack

from bus_schema.swm import (
    AcquireLock,
    GetCounter,
    GetLockInfo,
    IncrementCounter,
    Lock,
    LockInfo,
    ReleaseLock,
    RenewLock,
)
from mindbus.errors import ReplyError
from mindbus.logs import logger
from mindbus.sdk.errors import LockLost, MemoryAway
from mindbus.sdk.memory_link import SdkPart, mint_id
from mindbus.tasks import end

# Share of a lease that one renewal may take, so that there is time for several.
_RENEWAL_SHARE = 1 / 6


class LockTerms(TypedDict, total=False):
    """Duration of a lock, and how long to wait for it."""

    lease_ms: int
    wait_ms: int


class CoordinationClient(SdkPart):
    """Locks, taken in turn, and counters."""

    async def acquire_distributed_lock(self, name: str, **terms: Unpack[LockTerms]) -> Lock:
        """Take a lock until its lease ends.

        Raises MemoryAway, ReplyError: `conflict` where it is not free in time.
        """
        command = AcquireLock(name=name, **terms)
        timeout_s = self.link.timeout_s + command.wait_ms / 1000
        request = asyncio.create_task(self.link.ask(command, timeout_s=timeout_s), name=f"lock {name}")
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            # The lock may be granted all the same, and nobody would release it.
            self.link.run_in_background(self._give_back(name, request))
            raise

    async def release_distributed_lock(self, name: str, token: str) -> None:
        """Release a lock. Raises MemoryAway, ReplyError: `conflict` where it has been lost."""
        await self.link.ask(ReleaseLock(name=name, token=token))

    async def get_distributed_lock_info(self, name: str) -> LockInfo:
        """Holder of a lock and length of its queue. Raises MemoryAway."""
        return await self.link.ask(GetLockInfo(name=name))

    @asynccontextmanager
    async def distributed_lock(self, name: str, **terms: Unpack[LockTerms]) -> AsyncIterator[Lock]:
        """Hold a lock while the block runs, renewing its lease. What the block writes bears its `fencing`.

        Where the lease ends before the block, the block is cancelled. Raises LockLost, MemoryAway, ReplyError:
        `conflict` where it is not free in time.
        """
        asked_at = asyncio.get_running_loop().time()
        lock = await self.acquire_distributed_lock(name, **terms)
        lease_ms = AcquireLock(name=name, **terms).lease_ms
        renewing = RenewLock(name=name, token=lock.token, lease_ms=lease_ms)
        lease_s = lease_ms / 1000
        try:
            async with renew_lease(
                lambda: self.link.ask(renewing, timeout_s=lease_s * _RENEWAL_SHARE), lease_s, asked_at
            ):
                yield lock
        except LockLost:
            raise
        except BaseException:
            with suppress(ReplyError):
                await self.release_distributed_lock(name, lock.token)
            raise
        await self._release(name, lock.token)

    async def increment_distributed_counter(self, name: str, by: int = 1, *, operation_id: str | None = None) -> int:
        """Add to a counter, once for each operation id; returns its value. Raises MemoryAway, ReplyError."""
        operation_id = operation_id or mint_id("op")
        return (await self.link.ask(IncrementCounter(name=name, by=by, operation_id=operation_id))).value

    async def get_distributed_counter(self, name: str) -> int:
        """Value of a counter, 0 where nobody has added to it. Raises MemoryAway."""
        return (await self.link.ask(GetCounter(name=name))).value

    async def _give_back(self, name: str, request: "asyncio.Task[Lock]") -> None:
        with suppress(ReplyError):
            lock = await request
            await self.release_distributed_lock(name, lock.token)

    async def _release(self, name: str, token: str) -> None:
        try:
            await self.release_distributed_lock(name, token)
        except MemoryAway as error:
            logger().warning("lock left to its lease", lock=name, reason=str(error))
        except ReplyError as error:
            raise LockLost from error


# Share of the lease after which it is renewed, and tried again.
RENEWED_AFTER = 1 / 3
_RETRIED_AFTER = 1 / 20


@asynccontextmanager
async def renew_lease(renew: Callable[[], Awaitable[object]], lease_s: float, asked_at: float) -> AsyncIterator[None]:
    """Renew a lease until the block ends; where the lease ends before, the block is cancelled. Raises LockLost.

    Times are those of the loop's clock: a lease began no earlier than it was requested, whatever other clocks say.
    """
    lease = _Lease(renew, lease_s, asked_at + lease_s)
    if asyncio.get_running_loop().time() > asked_at + lease_s * RENEWED_AFTER:
        # The lock was waited for, so its lease began at an unknown moment.
        await lease.renew()
    ending = asyncio.timeout_at(lease.until)
    try:
        async with ending:
            keeping = asyncio.create_task(lease.keep(ending), name="lease")
            try:
                yield
            finally:
                await end(keeping)
    except TimeoutError as error:
        if ending.expired():
            raise LockLost from error
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
        except ReplyError as error:
            raise LockLost from error
        self.until = began + self._lease_s

    async def keep(self, ending: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        pause_s = self.until - self._lease_s * (1 - RENEWED_AFTER) - loop.time()
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self._lease_s * RENEWED_AFTER
            try:
                await self.renew()
            except MemoryAway as error:
                logger().warning("lease not renewed yet", reason=str(error))
                pause_s = self._lease_s * _RETRIED_AFTER
            except LockLost:
                ending.reschedule(loop.time())
                return
            else:
                ending.reschedule(self.until)

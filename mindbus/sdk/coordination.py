"""Locks with counters that agents share."""

import asyncio
from collections.abc import AsyncIterator
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
from mindbus.sdk.lease import kept
from mindbus.sdk.memory_failures import LockLost, MemoryAway
from mindbus.sdk.memory_link import OnMemory, minted

# Of a lease: whoever renews it has time to ask more than once.
_ANSWERED_WITHIN = 1 / 6


class Terms(TypedDict, total=False):
    """For how long a lock is taken, how long it is waited for."""

    lease_ms: int
    wait_ms: int


class Coordination(OnMemory):
    """The part of the SDK by which agents keep out of each other's way."""

    async def acquire_distributed_lock(self, name: str, **terms: Unpack[Terms]) -> Lock:
        """Take a lock, in turn, until its lease ends.

        Raises MemoryAway, ReplyError: `conflict` where it is not free in time.
        """
        command = AcquireLock(name=name, **terms)
        timeout_s = self.link.timeout_s + command.wait_ms / 1000
        asking = asyncio.create_task(self.link.ask(command, timeout_s=timeout_s), name=f"lock {name}")
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            # Its turn comes all the same; a lock for nobody would keep everybody waiting.
            self.link.see_to(self._give_back(name, asking))
            raise

    async def release_distributed_lock(self, name: str, token: str) -> None:
        """Let go of a lock. Raises MemoryAway, ReplyError: `conflict` where it has been lost."""
        await self.link.ask(ReleaseLock(name=name, token=token))

    async def get_distributed_lock_info(self, name: str) -> LockInfo:
        """Who holds a lock, how many wait for it. Raises MemoryAway."""
        return await self.link.ask(GetLockInfo(name=name))

    @asynccontextmanager
    async def distributed_lock(self, name: str, **terms: Unpack[Terms]) -> AsyncIterator[Lock]:
        """Hold a lock for as long as the block runs: its lease is renewed. What the block writes bears its `fencing`.

        Where the lease ends all the same, the block is cancelled. Raises LockLost, MemoryAway, ReplyError:
        `conflict` where it is not free in time.
        """
        asked_at = asyncio.get_running_loop().time()
        lock = await self.acquire_distributed_lock(name, **terms)
        lease_ms = AcquireLock(name=name, **terms).lease_ms
        renewing = RenewLock(name=name, token=lock.token, lease_ms=lease_ms)
        lease_s = lease_ms / 1000
        try:
            async with kept(lambda: self.link.ask(renewing, timeout_s=lease_s * _ANSWERED_WITHIN), lease_s, asked_at):
                yield lock
        except LockLost:
            raise
        except BaseException:
            with suppress(ReplyError):
                await self.release_distributed_lock(name, lock.token)
            raise
        await self._let_go(name, lock.token)

    async def increment_distributed_counter(self, name: str, by: int = 1, *, operation_id: str | None = None) -> int:
        """Add to a counter, once for each operation id; what it stands at. Raises MemoryAway, ReplyError."""
        operation_id = operation_id or minted("op")
        return (await self.link.ask(IncrementCounter(name=name, by=by, operation_id=operation_id))).value

    async def get_distributed_counter(self, name: str) -> int:
        """What a counter stands at; one that nobody has ever added to, at 0. Raises MemoryAway."""
        return (await self.link.ask(GetCounter(name=name))).value

    async def _give_back(self, name: str, asking: "asyncio.Task[Lock]") -> None:
        with suppress(ReplyError):
            lock = await asking
            await self.release_distributed_lock(name, lock.token)

    async def _let_go(self, name: str, token: str) -> None:
        try:
            await self.release_distributed_lock(name, token)
        except MemoryAway as away:
            logger().warning("lock left to its lease", lock=name, reason=str(away))
        except ReplyError as lost:
            raise LockLost(LockLost.__doc__) from lost

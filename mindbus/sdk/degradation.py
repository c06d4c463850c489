"""The one policy for when storage is away: three tries, then the buffer, then the heartbeat (spec 003 §12.3)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from mindbus.sdk.buffer import BufferLimits
from mindbus.sdk.failures import StorageAway

T = TypeVar("T")


@dataclass(frozen=True)
class Degradation:
    """How patient everybody is; the same for all agents."""

    attempts: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 4.0
    drained_at_once: int = 3
    stumbles: int = 5
    # All agents hear the same heartbeat; they must not all come at the same moment.
    spread_s: float = 1.0
    limits: BufferLimits = field(default_factory=BufferLimits)
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)
    chance: Callable[[], float] = field(default=random.random)

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Try with exponential backoff, full jitter. Raises StorageAway after the last try."""
        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.attempts),
            wait=wait_random_exponential(multiplier=self.first_wait_s, max=self.longest_wait_s),
            retry=retry_if_exception_type(StorageAway),
            reraise=True,
        )

        async def once() -> T:
            return await work()

        return await retrying(once)

"""The one policy for when storage is away: three tries, then the buffer, then the heartbeat (spec 003 §12.3)."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from mindbus.sdk.buffer import BufferLimits
from mindbus.sdk.failures import StorageAway
from mindbus.sdk.patience import Patience

T = TypeVar("T")


@dataclass(frozen=True)
class Degradation(Patience):
    """How patient everybody is; the same for all agents."""

    drained_at_once: int = 3
    stumbles: int = 5
    # All agents hear the same heartbeat; they must not all come at the same moment.
    spread_s: float = 1.0
    limits: BufferLimits = field(default_factory=BufferLimits)
    chance: Callable[[], float] = field(default=random.random)

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Raises StorageAway after the last try."""
        return await self.until_it_works(work, StorageAway)

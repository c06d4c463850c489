"""How often something that fails is tried again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """Tries with exponential backoff, full jitter."""

    attempts: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 4.0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)

    async def until_it_works(self, work: Callable[[], Awaitable[T]], failure: type[Exception]) -> T:
        """Raises the failure after the last try, anything else at once."""
        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.attempts),
            wait=wait_random_exponential(multiplier=self.first_wait_s, max=self.longest_wait_s),
            retry=retry_if_exception_type(failure),
            reraise=True,
        )

        async def once() -> T:
            return await work()

        return await retrying(once)

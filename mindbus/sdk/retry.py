"""Retries with backoff, and a circuit breaker."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from mindbus.sdk.errors import CircuitOpen, MemoryFailed

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter."""

    attempts: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 4.0
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)

    async def run(self, work: Callable[[], Awaitable[T]], failure: type[Exception]) -> T:
        """Result of the work, tried again after `failure`; raises it after the last attempt, anything else at once."""
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


class CircuitBreaker:
    """After `opens_after` failures in a row it rejects calls for `opens_for_s`; then one call is let through."""

    def __init__(
        self,
        opens_after: int = 5,
        opens_for_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        counts: type[MemoryFailed] = MemoryFailed,
    ) -> None:
        self._opens_after, self._opens_for_s, self._clock, self._counts = opens_after, opens_for_s, clock, counts
        self._failures = 0
        self._opened_at = 0.0
        self._is_probing = False

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Run the block, or raise CircuitOpen instead; `counts` is a failure, any other error a sign of life."""
        was_open = self._failures >= self._opens_after
        if was_open and (self._is_probing or self._clock() < self._opened_at + self._opens_for_s):
            raise CircuitOpen
        self._is_probing = was_open
        try:
            yield
        except CircuitOpen:
            # Another breaker is open: nobody was asked.
            raise
        except self._counts:
            self._failures += 1
            self._opened_at = self._clock()
            raise
        except Exception:
            self._failures = 0
            raise
        else:
            self._failures = 0
        finally:
            if was_open:
                self._is_probing = False

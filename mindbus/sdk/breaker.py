"""Leaves in peace what keeps failing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mindbus.sdk.memory_failures import CircuitOpen, NoAnswer


class Breaker:
    """After so many failures in a row nobody gets through for a while; then one tries for all the others."""

    def __init__(
        self,
        opens_after: int = 5,
        opens_for_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        counts: type[NoAnswer] = NoAnswer,
    ) -> None:
        self._opens_after, self._opens_for_s, self._clock, self._counts = opens_after, opens_for_s, clock, counts
        self._failures = 0
        self._opened_at = 0.0
        self._somebody_tries = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Raises CircuitOpen instead of letting the block run; what `counts` is a failure, the rest a sign of life."""
        was_open = self._failures >= self._opens_after
        if was_open and (self._somebody_tries or self._clock() < self._opened_at + self._opens_for_s):
            raise CircuitOpen
        self._somebody_tries = was_open
        try:
            yield
        except CircuitOpen:
            # Another one is open: nobody was asked.
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
                self._somebody_tries = False

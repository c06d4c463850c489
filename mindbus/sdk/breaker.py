"""Leaves in peace what keeps failing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mindbus.sdk.memory_failures import CircuitOpen, NoAnswer


class Breaker:
    """After so many failures in a row nobody gets through for a while; then one tries for all the others."""

    def __init__(
        self, opens_after: int = 5, opens_for_s: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._opens_after, self._opens_for_s, self._clock = opens_after, opens_for_s, clock
        self._failures = 0
        self._opened_at = 0.0
        self._somebody_tries = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Raises CircuitOpen instead of letting the block run; a NoAnswer out of it is a failure, the rest is none."""
        was_open = self._failures >= self._opens_after
        if was_open and (self._somebody_tries or self._clock() < self._opened_at + self._opens_for_s):
            raise CircuitOpen
        self._somebody_tries = was_open
        try:
            yield
        except NoAnswer:
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

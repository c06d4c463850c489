"""Wrong tokens, counted by where they come from."""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

from cachetools import LRUCache

_ADDRESSES = 10_000


class WrongTokens:
    """Lets an address guess so often within so long, then not for a while."""

    def __init__(self, clock: Callable[[], datetime], most: int = 10, within: timedelta = timedelta(minutes=1)) -> None:
        self._clock, self._most, self._within = clock, most, within
        self._guesses: LRUCache[str, deque[datetime]] = LRUCache(_ADDRESSES)

    def count(self, address: str) -> None:
        """It has guessed wrong."""
        guesses = self._guesses.get(address) or deque(maxlen=self._most)
        guesses.append(self._clock())
        self._guesses[address] = guesses

    def wait_s(self, address: str) -> int:
        """For how long it may not guess again; 0: it may."""
        guesses = self._guesses.get(address) or deque()
        if len(guesses) < self._most:
            return 0
        left = guesses[0] + self._within - self._clock()
        return max(0, int(left.total_seconds()) + 1) if left > timedelta(0) else 0

"""Counters: each addition is made once."""

from dataclasses import dataclass
from typing import Protocol

MOST = 2**53


@dataclass(frozen=True, slots=True)
class Addition:
    """So much is to be added; the same operation is made once, however often it is asked for."""

    name: str
    by: int
    operation_id: str


class CounterStore(Protocol):
    """Keeps counters through any crash. All of it raises CoordinationAway, or DatabaseAway."""

    async def add(self, addition: Addition) -> int:
        """What the counter stood at after it. Raises CounterFull."""

    async def value(self, name: str) -> int: ...

    async def forget_old(self) -> None:
        """Operations that nobody repeats any more."""

    async def clear(self) -> int:
        """Have them all begin anew; how many there were."""

"""What a look at the store has found, kind by kind."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bus_schema.storage_maintenance import Example, Tally
from storage_service.care.registry import Due, Holdings, Removal

T = TypeVar("T")
_SHOWN = 5
# So many of a kind are dealt with in one run; the next run takes the rest.
AT_ONCE = 20_000


@dataclass
class Pile(Generic[T]):
    """Things of one kind: all are counted, the first few shown, as many kept as a run takes."""

    count: int = 0
    size_bytes: int = 0
    shown: list[Example] = field(default_factory=list)
    kept: list[tuple[T, Example]] = field(default_factory=list)

    def add(self, thing: T, example: Example) -> None:
        """Put another one on it."""
        self.count += 1
        self.size_bytes += example.size_bytes
        if len(self.shown) < _SHOWN:
            self.shown.append(example)
        if len(self.kept) < AT_ONCE:
            self.kept.append((thing, example))

    @property
    def tally(self) -> Tally:
        """As it is reported."""
        return Tally(count=self.count, size_bytes=self.size_bytes, examples=tuple(self.shown))

    async def each(self, deal: Callable[[T], Awaitable[bool]]) -> Tally:
        """Deal with what is kept, one after the other; the report of what was really done."""
        done: Pile[T] = Pile()
        for thing, example in self.kept:
            if await deal(thing):
                done.add(thing, example)
        return done.tally


@dataclass
class Survey:
    """All that a run of garbage collection would take, beside what there is; nothing has been changed for it."""

    holdings: Holdings
    due: Pile[Due] = field(default_factory=Pile)
    unused: Pile[Removal] = field(default_factory=Pile)
    unknown: Pile[Removal] = field(default_factory=Pile)
    unregistered: Pile[Removal] = field(default_factory=Pile)
    overdue: Pile[str] = field(default_factory=Pile)
    claims: Pile[str] = field(default_factory=Pile)
    objects: int = 0
    forgotten: int = 0

    @property
    def piles(self) -> Iterable[Pile[Due] | Pile[Removal] | Pile[str]]:
        """All of them."""
        return (self.due, self.unused, self.unknown, self.unregistered, self.overdue, self.claims)

    @property
    def is_complete(self) -> bool:
        """Whether one run takes it all."""
        return all(pile.count == len(pile.kept) for pile in self.piles)

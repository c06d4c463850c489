"""What a worker is to the bus."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from bus_schema.envelope import Envelope
from bus_schema.messages import Message
from mindbus.bus.client import Client
from mindbus.bus.handlers import Routes, routes_of
from mindbus.bus.inbox import Inbox, MemoryInbox
from mindbus.settings import Settings


class Leadership(Protocol):
    """A place for one; instances that do not have it stand by, to take over when it is free."""

    async def try_acquire(self) -> bool:
        """Whether it is ours now. Raises OSError or a database error where that cannot be found out."""

    async def acquire(self) -> None:
        """Wait, through whatever trouble, until it is ours."""

    async def lost(self) -> None:
        """Return once it is ours no more, as when the connection that holds it is gone."""

    async def release(self) -> None:
        """Leave it to the next one."""


def utc_now() -> datetime:
    """The wall clock, where no test or simulation has injected another."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class WorkerContext:
    """What a worker may be built from."""

    settings: Settings
    bus: Client
    clock: Callable[[], datetime] = field(default=utc_now)


class Worker:
    """A consumer on the bus: name it, mark its methods with `on_command` or `on_event`, put it into the fleet.

    `concurrency` is how many messages it handles at once, which is its prefetch; take 1 where a message may kill the
    process. `attempts` is how often a message is tried that meets a TemporaryFailure. With a `leadership`, one
    instance consumes while the others stand by. Of several workers in one process those of a lower `start_stage`
    consume before the others start; one that `stops_last` drains after the others.
    """

    name: str = ""
    start_stage: int = 1
    stops_last: bool = False
    concurrency: int = 8
    attempts: int = 5
    routes: ClassVar[Routes] = Routes({}, {}, {})
    leadership: Leadership | None = None
    _inbox: Inbox | None = None

    def __init_subclass__(cls) -> None:
        """Read the routes at import, so that a worker which cannot be routed never starts."""
        super().__init_subclass__()
        cls.routes = routes_of(cls)

    @property
    def identity(self) -> str:
        """Who it is as a requester, without instance."""
        return f"svc.{self.name}"

    @property
    def inbox(self) -> Inbox:
        """What it remembers of handled messages."""
        if self._inbox is None:
            self._inbox = MemoryInbox()
        return self._inbox

    @inbox.setter
    def inbox(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def order_key(self, message: Message | Envelope) -> str | None:
        """Override to have messages of one key handled strictly one after the other, as they were sent.

        Keys run side by side, up to `concurrency` messages in all, so give it room for many keys. A message of no key
        waits for nobody. One instance consumes while the others stand by.
        """
        return None

    @property
    def is_ordered(self) -> bool:
        """Whether order matters to it."""
        return type(self).order_key is not Worker.order_key

    async def start(self) -> None:
        """Open what it needs before the first message."""

    async def stop(self) -> None:
        """Close it after the last."""

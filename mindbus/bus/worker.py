"""Worker: the base class of every consumer, with its context, its middleware and its leadership."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from bus_schema.envelope import Envelope
from bus_schema.identities import SERVICE_NAME
from bus_schema.messages import Message
from mindbus.bus.client import Client
from mindbus.bus.context import MessageContext
from mindbus.bus.inbox import Inbox, MemoryInbox
from mindbus.bus.routes import Routes, routes_of
from mindbus.bus.transport import Outgoing
from mindbus.settings import Settings, SettingsT


class Leadership(Protocol):
    """A lock held by one instance; the others stand by to take over."""

    async def try_acquire(self) -> bool:
        """Whether this instance holds the lock now. Raises OSError or a database error where it is unknown."""

    async def acquire(self) -> None:
        """Wait until this instance holds the lock, retrying after errors."""

    async def wait_until_lost(self) -> None:
        """Return once the lock is lost, as with the connection that holds it."""

    async def release(self) -> None:
        """Release the lock."""


CallNext = Callable[[], Awaitable[Sequence[Outgoing]]]


class Middleware(Protocol):
    """Wraps the handling of one message: `await call_next()` handles it and returns the messages that it causes.

    It runs within the unit of work of the message, once per attempt; an exception that it raises ends the message as
    if the handler had raised it, so `Rejected` refuses it.
    """

    def __call__(self, context: MessageContext, call_next: CallNext) -> Awaitable[Sequence[Outgoing]]: ...


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class WorkerContext:
    """Settings, client and clock that a worker is built from."""

    settings: Settings
    bus: Client
    clock: Callable[[], datetime] = field(default=utc_now)

    def settings_as(self, kind: type[SettingsT]) -> SettingsT:
        """The settings with those that a subclass adds, read from the environment unless given."""
        return self.settings if isinstance(self.settings, kind) else kind(**self.settings.model_dump())


class Worker:
    """A consumer on the bus: name it, mark its methods with `on_command` or `on_event`, put it into the fleet.

    Handlers may also live in classes of their own, each with its constructor, which `include` adds. `concurrency` is
    how many messages it handles at once, which is its prefetch; take 1 where a message may kill the process. `attempts`
    is how often a message is tried that meets a TemporaryFailure. A handler that takes longer than `time_limit_s`
    seconds is cancelled, which counts as one; `@time_limit` gives a handler another limit. `middleware` wraps every
    handler, the first of them outermost. With a `leadership`, one instance consumes while the others stand by. Of
    several workers in one process those of a lower `start_stage` consume before the others start; one that `stops_last`
    drains after the others. With `direct_files` it reads and writes the data of large messages in the file store
    itself, whatever the settings say.

    The commands of one that `is_partitionable` may be spread over several queues by the user whom they are about, as
    the settings say: `partitions` is their number. Whatever it keeps of users, it keeps of each apart.

    A worker with a user of its own on the broker may command its own service, those that its handlers return commands
    to, and those that serve everybody, such as storage; others are named in `sends_to`. Topics of temporary
    subscriptions, such as `process.*`, are named in `subscribes_to`.
    """

    name: str = ""
    start_stage: int = 1
    stops_last: bool = False
    direct_files: bool = False
    sends_to: Sequence[str] = ()
    # Types of artifacts that it makes of the steps of cards: a worker with any is a role.
    produces: Sequence[str] = ()
    subscribes_to: Sequence[str] = ()
    is_partitionable: bool = False
    partitions: int = 1
    concurrency: int = 8
    attempts: int = 5
    time_limit_s: float = 600.0
    routes: Routes = Routes()
    middleware: Sequence[Middleware] = ()
    leadership: Leadership | None = None
    _inbox: Inbox | None = None

    def __init_subclass__(cls) -> None:
        """Read the routes at import, so that a worker which cannot be routed never starts."""
        super().__init_subclass__()
        if cls.name and not re.fullmatch(SERVICE_NAME, cls.name):
            raise TypeError(f"a worker's name is lowercase letters, digits, - and _, not {cls.name!r}")
        cls.routes = routes_of(cls)

    def __init__(self, context: WorkerContext | None = None) -> None:
        """Override to keep what it needs of the context."""

    def include(self, *routers: object) -> None:
        """Add the handlers and tasks of other objects. Raises TypeError where two receive the same message."""
        for router in routers:
            self.routes = self.routes.including(router, type(self))
            self.subscribes_to = (*self.subscribes_to, *getattr(router, "subscribes_to", ()))

    @property
    def identity(self) -> str:
        """The requester of what it sends, without instance."""
        return f"svc.{self.name}"

    @property
    def inbox(self) -> Inbox:
        if self._inbox is None:
            self._inbox = MemoryInbox()
        return self._inbox

    @inbox.setter
    def inbox(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def order_key(self, message: Message | Envelope) -> str | None:
        """Override to have messages of one key handled strictly one after the other, in the order they were sent.

        Keys run side by side, up to `concurrency` messages in all, so give it room for many keys. A message without a
        key does not wait. One instance consumes while the others stand by.
        """
        return None

    @property
    def is_ordered(self) -> bool:
        """Whether it overrides `order_key`."""
        return type(self).order_key is not Worker.order_key

    @property
    def health_note(self) -> str:
        """Override to tell, with its health, of something to look at though it works; empty where there is nothing."""
        return ""

    def on_consuming(self) -> None:
        """Override to learn that it begins to consume, again after a pause in which others may have been served."""

    async def start(self) -> None:
        """Open what it needs before the first message."""

    async def stop(self) -> None:
        """Close it after the last."""

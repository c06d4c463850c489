"""Workers, queues, dead letters."""

from collections.abc import Collection

from bus_schema.envelope import NotAnEnvelope, from_wire
from gateway.event_feed import EventFeed, WorkerInstance
from mindbus.bus.connection import find_broker
from mindbus.bus.deadletters import DeadLetter, DeadLetters
from mindbus.management import Management, QueueState, open_management
from mindbus.settings import Settings

_PREFIX = "mb.q."
_DEAD = ".dead"
_MOST_LETTERS = 10_000


class NoSuchDeadLetter(LookupError):
    """There is no such dead letter (any more)."""


class NoSuchService(LookupError):
    """No service of this name has dead letters; look at the queues for those that do."""


class FleetDesk:
    """What the broker and the heartbeats say."""

    settings: Settings
    feed: EventFeed

    async def fleet(self) -> list[WorkerInstance]:
        """Every instance of a worker that was heard of within the hour."""
        return self.feed.workers

    async def queues(self, prefix: str = "mb.") -> list[QueueState]:
        """All queues of that prefix. Raises ManagementUnavailable."""
        async with self._management() as management:
            return await management.queues(prefix)

    async def dead_letters(self, service: str | None = None, limit: int = 50) -> list[DeadLetter]:
        """At most so many of each service, the oldest first. Raises NoSuchService, BusUnavailable."""
        letters = self._letters()
        found: list[DeadLetter] = []
        for name in await self._services(service):
            found += await letters.look(name, limit)
        return found

    async def dead_letter(self, service: str, message_id: str) -> DeadLetter:
        """One of them, whole. Raises NoSuchDeadLetter, NoSuchService."""
        for letter in await self.dead_letters(service, _MOST_LETTERS):
            if letter.message_id == message_id:
                return letter
        raise NoSuchDeadLetter(NoSuchDeadLetter.__doc__)

    async def replay(self, service: str, ids: Collection[str] | None, by: str) -> list[DeadLetter]:
        """Send them, or all, back to where they failed, as first attempts. Raises CannotReplay."""
        (name,) = await self._services(service)
        return await self._letters().replay(name, lambda letter: ids is None or letter.message_id in ids, by)

    async def drop(self, service: str, ids: Collection[str] | None) -> list[DeadLetter]:
        """Delete them, or all, for good."""
        (name,) = await self._services(service)
        return await self._letters().drop(name, lambda letter: ids is None or letter.message_id in ids)

    async def _services(self, wanted: str | None) -> list[str]:
        queues = await self.queues(_PREFIX)
        known = [q.name.removeprefix(_PREFIX).removesuffix(_DEAD) for q in queues if q.name.endswith(_DEAD)]
        if wanted is None:
            return known
        if wanted not in known:
            raise NoSuchService(f"{NoSuchService.__doc__} ({wanted})")
        return [wanted]

    def _letters(self) -> DeadLetters:
        return DeadLetters(find_broker(self.settings))

    def _management(self) -> Management:
        return open_management(self.settings, find_broker(self.settings))


def body_of(letter: DeadLetter) -> dict[str, object] | str:
    """Its envelope, or the text that is none."""
    try:
        return from_wire(letter.body).model_dump(mode="json", exclude_none=True)
    except NotAnEnvelope:
        return letter.body.decode("utf-8", errors="replace")

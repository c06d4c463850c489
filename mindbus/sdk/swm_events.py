"""What an agent hears of the units that it has subscribed to (spec 000 §7.2.2)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

from pydantic import ValidationError

from bus_schema.envelope import Envelope, explain
from bus_schema.glm import KemDeleted, KemUpdated
from bus_schema.kem import Kem, KemNotice
from bus_schema.messages import Event
from bus_schema.swm import KemEvicted, KemPublished, Subscribe, SubscriptionTopic, Unsubscribe
from mindbus.errors import ReplyError
from mindbus.logs import logger
from mindbus.sdk.local_memory import LocalAgentMemory
from mindbus.sdk.memory_failures import NotOpen
from mindbus.sdk.memory_link import MemoryLink, OnMemory
from mindbus.sdk.notices import heeding_notices
from mindbus.tasks import end

EventType = Literal["KEM_PUBLISHED", "KEM_UPDATED", "KEM_EVICTED", "KEM_DELETED"]
_KINDS: dict[str, tuple[EventType, type[Event]]] = {
    KemPublished.wire.type: ("KEM_PUBLISHED", KemPublished),
    KemUpdated.wire.type: ("KEM_UPDATED", KemUpdated),
    KemEvicted.wire.type: ("KEM_EVICTED", KemEvicted),
    KemDeleted.wire.type: ("KEM_DELETED", KemDeleted),
}


@dataclass(frozen=True, slots=True)
class SwmEvent:
    """What has happened to a unit; of one that is gone, or may no longer be read, there is the id alone."""

    event_type: EventType
    kem_id: str
    told_at: datetime
    kem: Kem | None = None


class SwmEvents(AsyncIterator[SwmEvent]):
    """Events of one subscription, in order: `async with`, then iterate over it, as often as there is time for.

    Local memory is as the event says when it is handed out. An event stays until the next one is asked for, so what
    was not finished comes again. A subscription with a name stays when nobody listens: whoever listens under that name
    next hears what was told meanwhile.
    """

    def __init__(self, link: MemoryLink, local_memory: LocalAgentMemory, command: Subscribe) -> None:
        self._link, self._local_memory, self._command = link, local_memory, command
        self._open = AsyncExitStack()
        self._told: AsyncIterator[Envelope] | None = None
        self._next: asyncio.Task[Envelope] | None = None
        self.subscription_id = ""

    async def __aenter__(self) -> Self:
        """Listen from here on. Raises MemoryAway, ReplyError: `invalid`, with the position in a malformed filter."""
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(heeding_notices(self._link.bus, self._local_memory))
            self.subscription_id = (await self._link.ask(self._command)).subscription_id
            if self._command.name is None:
                opening.push_async_callback(self._unsubscribe)
            hearing = await opening.enter_async_context(self._link.bus.heard_by(self.subscription_id))
            self._told = aiter(hearing)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Stop listening."""
        self._told = None
        if self._next is not None:
            await end(self._next)
        await self._open.aclose()

    async def __anext__(self) -> SwmEvent:
        """Whoever gives up waiting for it can wait for it again. Raises NotOpen."""
        while True:
            if self._told is None:
                raise NotOpen(NotOpen.__doc__)
            self._next = self._next or asyncio.create_task(_next(self._told), name="next event of memory")
            envelope = await asyncio.shield(self._next)
            self._next = None
            event = _event(envelope)
            if event is not None:
                self._refresh(event)
                return event

    async def _unsubscribe(self) -> None:
        try:
            await self._link.ask(Unsubscribe(subscription_id=self.subscription_id))
        except ReplyError as failed:
            # A queue that nobody reads goes by itself.
            logger().warning("subscription left behind", subscription_id=self.subscription_id, reason=str(failed))

    def _refresh(self, event: SwmEvent) -> None:
        if event.kem is None:
            self._local_memory.drop(event.kem_id)
        else:
            self._local_memory.keep(event.kem)


class Listening(OnMemory):
    """The part of the SDK that hears of changes."""

    def handle_swm_events(self, *filters: str, name: str | None = None) -> SwmEvents:
        """What happens to units that meet any of the filters, such as `metadata.project_id=alpha`; else to all.

        Local memory follows. The same `name` goes on where it was, whatever has become of the process meanwhile.
        """
        topics = tuple(SubscriptionTopic(filter_criteria=text) for text in filters)
        return SwmEvents(
            self.link, self.local_memory, Subscribe(agent_id=self.link.bus.owner, topics=topics, name=name)
        )

    @asynccontextmanager
    async def kept_fresh(self, *filters: str, name: str | None = None) -> AsyncIterator[None]:
        """Have local memory follow what `handle_swm_events` would hear, by itself, until the block ends."""
        async with self.handle_swm_events(*filters, name=name) as events:
            following = asyncio.create_task(_follow(events), name="local memory follows")
            try:
                yield
            finally:
                await end(following)
        if not following.cancelled():
            following.result()


async def _follow(events: SwmEvents) -> None:
    async for event in events:
        logger().debug("local memory follows", event_type=event.event_type, kem_id=event.kem_id)


async def _next(told: AsyncIterator[Envelope]) -> Envelope:
    return await anext(told)


def _event(envelope: Envelope) -> SwmEvent | None:
    if envelope.type not in _KINDS:
        # Told by a newer service.
        return None
    event_type, kind = _KINDS[envelope.type]
    try:
        event = kind.model_validate(envelope.data)
    except ValidationError as invalid:
        logger().warning("unreadable event", type=envelope.type, reason=explain(invalid))
        return None
    kem = event.kem if isinstance(event, KemNotice) else None
    return SwmEvent(event_type, str(getattr(event, "kem_id", "")), envelope.time, kem)

"""Events of the memory units that an agent has subscribed to (spec 000 §7.2.2)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

from cachetools import LRUCache
from pydantic import ValidationError

from bus_schema.envelope import Envelope, explain
from bus_schema.glm import KemDeleted, KemUpdated
from bus_schema.kem import Kem, KemNotice
from bus_schema.messages import Event
from bus_schema.swm import KemEvicted, KemPublished, Subscribe, SubscriptionTopic, Unsubscribe
from mindbus.errors import ReplyError
from mindbus.logs import logger
from mindbus.sdk.errors import NotOpen
from mindbus.sdk.local_memory import LocalAgentMemory, dropping_stale
from mindbus.sdk.memory_link import MemoryLink, SdkPart
from mindbus.tasks import end

_REMEMBERED = 10_000
EventType = Literal["KEM_PUBLISHED", "KEM_UPDATED", "KEM_EVICTED", "KEM_DELETED"]
_KINDS: dict[str, tuple[EventType, type[Event]]] = {
    KemPublished.wire.type: ("KEM_PUBLISHED", KemPublished),
    KemUpdated.wire.type: ("KEM_UPDATED", KemUpdated),
    KemEvicted.wire.type: ("KEM_EVICTED", KemEvicted),
    KemDeleted.wire.type: ("KEM_DELETED", KemDeleted),
}


@dataclass(frozen=True, slots=True)
class SwmEvent:
    """A change of a unit; of a unit that is gone, or may no longer be read, the id alone."""

    event_type: EventType
    kem_id: str
    told_at: datetime
    kem: Kem | None = None


class SwmEvents(AsyncIterator[SwmEvent]):
    """Events of one subscription, in order, each once: `async with` it, then iterate.

    Local memory is up to date with an event when it is yielded. An event is acknowledged when the next one is
    requested, so an unfinished one comes again. A subscription with a name outlives its listener: the next listener of
    that name gets the events since.
    """

    def __init__(self, link: MemoryLink, local_memory: LocalAgentMemory, command: Subscribe) -> None:
        self._link, self._local_memory, self._command = link, local_memory, command
        self._open = AsyncExitStack()
        self._envelopes: AsyncIterator[Envelope] | None = None
        self._next: asyncio.Task[Envelope] | None = None
        # Ids of the last events: after a crash, one may be published twice.
        self._seen: LRUCache[str, None] = LRUCache(_REMEMBERED)
        self.subscription_id = ""

    async def __aenter__(self) -> Self:
        """Listen from here on. Raises MemoryAway, ReplyError: `invalid`, with the position in a malformed filter."""
        self._seen.clear()
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(dropping_stale(self._link.bus, self._local_memory))
            self.subscription_id = (await self._link.ask(self._command)).subscription_id
            if self._command.name is None:
                opening.push_async_callback(self._unsubscribe)
            envelopes = await opening.enter_async_context(self._link.bus.standing_subscription(self.subscription_id))
            self._envelopes = aiter(envelopes)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._envelopes = None
        if self._next is not None:
            await end(self._next)
        await self._open.aclose()

    async def __anext__(self) -> SwmEvent:
        """The next event; a cancelled wait can be repeated. Raises NotOpen."""
        while True:
            if self._envelopes is None:
                raise NotOpen(NotOpen.__doc__)
            self._next = self._next or asyncio.create_task(_next(self._envelopes), name="next event of memory")
            envelope = await asyncio.shield(self._next)
            self._next = None
            event = None if envelope.id in self._seen else _event(envelope)
            self._seen[envelope.id] = None
            if event is not None:
                self._refresh(event)
                return event

    async def _unsubscribe(self) -> None:
        try:
            await self._link.ask(Unsubscribe(subscription_id=self.subscription_id))
        except ReplyError as failed:
            # A queue without readers expires.
            logger().warning("subscription left behind", subscription_id=self.subscription_id, reason=str(failed))

    def _refresh(self, event: SwmEvent) -> None:
        if event.kem is None:
            self._local_memory.drop(event.kem_id)
        else:
            self._local_memory.keep(event.kem)


class SubscriptionClient(SdkPart):
    """Subscriptions to changes of units."""

    def handle_swm_events(self, *filters: str, name: str | None = None) -> SwmEvents:
        """Changes of units that match any of the filters, such as `metadata.project_id=alpha`, or of all units.

        Local memory is updated. A subscription of the same `name` goes on where it was, even in another process.
        """
        topics = tuple(SubscriptionTopic(filter_criteria=text) for text in filters)
        return SwmEvents(
            self.link, self.local_memory, Subscribe(agent_id=self.link.bus.owner, topics=topics, name=name)
        )

    async def end_subscription(self, name: str) -> None:
        """End the subscription of a name, with what it has not read yet; nothing happens where there is none.

        Raises MemoryAway.
        """
        # Its id is known to the service, which tells it to whoever subscribes.
        known = await self.link.ask(Subscribe(agent_id=self.link.bus.owner, name=name))
        await self.link.ask(Unsubscribe(subscription_id=known.subscription_id))

    @asynccontextmanager
    async def keep_fresh(self, *filters: str, name: str | None = None) -> AsyncIterator[None]:
        """Update local memory with the events of `handle_swm_events` until the block ends."""
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


async def _next(envelopes: AsyncIterator[Envelope]) -> Envelope:
    return await anext(envelopes)


def _event(envelope: Envelope) -> SwmEvent | None:
    if envelope.type not in _KINDS:
        # Published by a newer service.
        return None
    event_type, kind = _KINDS[envelope.type]
    try:
        event = kind.model_validate(envelope.data)
    except ValidationError as invalid:
        logger().warning("unreadable event", type=envelope.type, reason=explain(invalid))
        return None
    kem = event.kem if isinstance(event, KemNotice) else None
    return SwmEvent(event_type, str(getattr(event, "kem_id", "")), envelope.time, kem)

"""One ear on the bus for all pages and clients of this process."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.fleet import Heartbeat, State
from mindbus.bus.client import Client, Subscription
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.tasks import end

ItemT = TypeVar("ItemT")

MISSED_HEARTBEATS = 3
_WAITING = 1000
_AGAIN_S = 1.0
_FORGOTTEN_AFTER = timedelta(hours=1)


class MissedEvents:
    """Events came faster than this listener took them; what is missing is on the timeline."""


@dataclass(frozen=True)
class WorkerInstance:
    """A worker as its last heartbeat showed it."""

    service: str
    instance: str
    state: State
    version: str
    at: datetime
    is_silent: bool


class Listener(Generic[ItemT]):
    """What one page or client has yet to hear; who is too slow hears so instead."""

    def __init__(self, most: int = _WAITING) -> None:
        self._most = most
        self._waiting: deque[ItemT | MissedEvents] = deque()
        self._news = asyncio.Event()

    def tell(self, item: ItemT | MissedEvents) -> None:
        """Never blocks."""
        if len(self._waiting) >= self._most:
            self._waiting.clear()
            self._waiting.append(MissedEvents())
        self._waiting.append(item)
        self._news.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def taken(self) -> list[ItemT | MissedEvents]:
        """All that is there now."""
        items = list(self._waiting)
        self._waiting.clear()
        self._news.clear()
        return items

    async def some(self) -> None:
        """Wait until there is something."""
        await self._news.wait()

    async def __aiter__(self) -> AsyncIterator[ItemT | MissedEvents]:
        while True:
            await self.some()
            for item in self.taken():
                yield item


class EventFeed:
    """Hears every event once, tells everybody who listens; remembers heartbeats, which it tells nobody."""

    def __init__(self, bus: Client, heartbeat_s: float, clock: Callable[[], datetime]) -> None:
        self._bus, self._clock = bus, clock
        self._silent_after = timedelta(seconds=heartbeat_s * MISSED_HEARTBEATS)
        self._listeners: set[Listener[Envelope]] = set()
        self._beats: dict[tuple[str, str], tuple[Heartbeat, datetime]] = {}
        self._heard_at: datetime | None = None
        self._hearing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen from now on."""
        subscription = await self._bus.subscribe("#").__aenter__()
        self._heard_at = self._clock()
        self._hearing = asyncio.create_task(self._hear_for_ever(subscription), name="gateway feed")

    async def stop(self) -> None:
        """Listen no more."""
        if self._hearing is not None:
            await end(self._hearing)

    @property
    def is_hearing(self) -> bool:
        """Whether anything was heard lately; the gateway's own heartbeat comes back on it, if nothing else does."""
        return self._heard_at is not None and self._clock() - self._heard_at <= self._silent_after

    @property
    def workers(self) -> list[WorkerInstance]:
        """Every instance that has been heard of within the hour, by name."""
        now = self._clock()
        return [_seen(beat, at, is_silent=now - at > self._silent_after) for beat, at in self._known(now)]

    @contextmanager
    def listen(self, most: int = _WAITING) -> Iterator[Listener[Envelope]]:
        """Hear what is told from now on; at most so many events wait."""
        listener: Listener[Envelope] = Listener(most)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def _hear_for_ever(self, subscription: Subscription[Envelope]) -> None:
        while True:
            try:
                async with subscription:
                    async for envelope in subscription:
                        self._hear(envelope)
            except (OSError, BusUnavailable, ReplyError) as trouble:
                logger().warning("feed interrupted", reason=str(trouble))
                self.tell(MissedEvents())
                await asyncio.sleep(_AGAIN_S)
                subscription = self._bus.subscribe("#")

    def _hear(self, envelope: Envelope) -> None:
        self._heard_at = self._clock()
        if envelope.type == Heartbeat.wire.type:
            self._remember(envelope)
        else:
            self.tell(envelope)

    def tell(self, item: Envelope | MissedEvents) -> None:
        """To everybody who listens just now."""
        for listener in self._listeners:
            listener.tell(item)

    def _remember(self, envelope: Envelope) -> None:
        try:
            beat = Heartbeat.model_validate(envelope.data)
        except ValidationError as invalid:
            logger().warning("unreadable heartbeat", source=envelope.source, reason=str(invalid))
            return
        now = self._clock()
        self._beats[beat.service, beat.instance] = beat, now
        self._beats = {(beat.service, beat.instance): (beat, at) for beat, at in self._known(now)}

    def _known(self, now: datetime) -> list[tuple[Heartbeat, datetime]]:
        return [found for _, found in sorted(self._beats.items()) if now - found[1] <= _FORGOTTEN_AFTER]


def _seen(beat: Heartbeat, at: datetime, *, is_silent: bool) -> WorkerInstance:
    state = State.READY if beat.ready else State.STANDING_BY if beat.standing_by else State.UNREADY
    return WorkerInstance(beat.service, beat.instance, state, beat.version, at, is_silent)

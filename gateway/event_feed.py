"""One subscription to all events for every page and client of this process; worker instances by their heartbeats."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from pydantic import ValidationError

from bus_schema.access import may_publish
from bus_schema.envelope import Envelope
from bus_schema.fleet import Heartbeat, ProcessMetrics, State
from bus_schema.identities import worker_of
from gateway.reported_metrics import ReportedMetrics
from mindbus.bus.client import Client
from mindbus.bus.subscriptions import EventSubscription
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.tasks import running

ItemT = TypeVar("ItemT")

MISSED_HEARTBEATS = 3
_MAX_WAITING = 1000
_RETRY_AFTER_S = 1.0
_SHOWN_FOR = timedelta(hours=1)


class MissedEvents:
    """Marks a gap: events came faster than the listener took them, or the connection was lost."""


@dataclass(frozen=True)
class WorkerInstance:
    """An instance of a worker, from its last heartbeat."""

    service: str
    instance: str
    state: State
    version: str
    at: datetime
    is_silent: bool
    note: str = ""


class Listener(Generic[ItemT]):
    """Queue of at most `capacity` items for one page or client; on overflow they are replaced by MissedEvents."""

    def __init__(self, capacity: int = _MAX_WAITING, accepts: Callable[[ItemT], bool] = lambda _item: True) -> None:
        self._capacity, self._accepts = capacity, accepts
        self._waiting: deque[ItemT | MissedEvents] = deque()
        self._is_filled = asyncio.Event()

    def put(self, item: ItemT | MissedEvents) -> None:
        """Add an item that it accepts; never blocks."""
        if not (isinstance(item, MissedEvents) or self._accepts(item)):
            return
        if len(self._waiting) >= self._capacity:
            self._waiting.clear()
            self._waiting.append(MissedEvents())
        self._waiting.append(item)
        self._is_filled.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> list[ItemT | MissedEvents]:
        """Remove and return all waiting items."""
        items = list(self._waiting)
        self._waiting.clear()
        self._is_filled.clear()
        return items

    async def wait(self) -> None:
        await self._is_filled.wait()

    async def __aiter__(self) -> AsyncIterator[ItemT | MissedEvents]:
        while True:
            await self.wait()
            for item in self.take():
                yield item


class Broadcast(Generic[ItemT]):
    """Passes every item to all current listeners."""

    def __init__(self) -> None:
        self.listeners: set[Listener[ItemT]] = set()

    @contextmanager
    def listen(
        self, capacity: int = _MAX_WAITING, accepts: Callable[[ItemT], bool] = lambda _item: True
    ) -> Iterator[Listener[ItemT]]:
        listener: Listener[ItemT] = Listener(capacity, accepts)
        self.listeners.add(listener)
        try:
            yield listener
        finally:
            self.listeners.discard(listener)

    def put(self, item: ItemT | MissedEvents) -> None:
        for listener in self.listeners:
            listener.put(item)


class EventFeed(Broadcast[Envelope]):
    """Passes every event to all listeners, except the states of workers and their metrics, which it keeps."""

    def __init__(self, bus: Client, heartbeat_s: float, clock: Callable[[], datetime]) -> None:
        super().__init__()
        self._bus, self._clock = bus, clock
        self._silent_after = timedelta(seconds=heartbeat_s * MISSED_HEARTBEATS)
        self._beats: dict[tuple[str, str], tuple[Heartbeat, datetime]] = {}
        self._last_event_at: datetime | None = None
        self.metrics = ReportedMetrics()

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        """Receive events for the time of a block. Raises BusUnavailable."""
        subscription = await self._subscription().__aenter__()
        self._last_event_at = self._clock()
        async with running(self._receive_forever(subscription), "gateway feed"):
            yield

    @property
    def is_connected(self) -> bool:
        """True if an event came lately; at least the gateway's own heartbeat comes back."""
        return self._last_event_at is not None and self._clock() - self._last_event_at <= self._silent_after

    @property
    def workers(self) -> list[WorkerInstance]:
        """Every instance with a heartbeat within the last hour, by name."""
        now = self._clock()
        return [
            _instance_of(beat, at, is_silent=now - at > self._silent_after) for beat, at in self._recent_heartbeats(now)
        ]

    async def _receive_forever(self, subscription: EventSubscription[Envelope]) -> None:
        while True:
            try:
                async with subscription:
                    async for envelope in subscription:
                        self._receive(envelope)
            except (OSError, BusUnavailable, ReplyError) as error:
                logger().warning("feed interrupted", reason=str(error))
            except Exception:  # noqa: BLE001  # a mistake in here must not leave the screens as they are for ever
                logger().exception("feed interrupted")
            self.put(MissedEvents())
            await asyncio.sleep(_RETRY_AFTER_S)
            subscription = self._subscription()

    def _subscription(self) -> EventSubscription[Envelope]:
        return self._bus.subscribe("#", on_gap=lambda: self.put(MissedEvents()))

    def _receive(self, envelope: Envelope) -> None:
        self._last_event_at = self._clock()
        if envelope.type == Heartbeat.wire.type:
            self._record_heartbeat(envelope)
        elif envelope.type == ProcessMetrics.wire.type:
            self.metrics.record(envelope, self._clock())
        elif may_publish(envelope.type, envelope.mbrequester):
            self.put(envelope)

    def _record_heartbeat(self, envelope: Envelope) -> None:
        try:
            beat = Heartbeat.model_validate(envelope.data)
        except ValidationError as invalid:
            logger().warning("unreadable heartbeat", source=envelope.source, reason=str(invalid))
            return
        if worker_of(envelope.mbrequester) not in (beat.service, None):
            logger().warning("heartbeat of another", service=beat.service, by=envelope.mbrequester)
            return
        now = self._clock()
        self._beats[beat.service, beat.instance] = beat, now
        self._beats = {(beat.service, beat.instance): (beat, at) for beat, at in self._recent_heartbeats(now)}

    def _recent_heartbeats(self, now: datetime) -> list[tuple[Heartbeat, datetime]]:
        return [beat for _, beat in sorted(self._beats.items()) if now - beat[1] <= _SHOWN_FOR]


def _instance_of(beat: Heartbeat, at: datetime, *, is_silent: bool) -> WorkerInstance:
    state = State.READY if beat.ready else State.STANDING_BY if beat.standing_by else State.UNREADY
    return WorkerInstance(beat.service, beat.instance, state, beat.version, at, is_silent, beat.note)


def rank(worker: WorkerInstance) -> tuple[bool, bool, bool]:
    """Sort key of the instances of a service: the one that does the work comes first."""
    return worker.is_silent, worker.state is State.UNREADY, worker.state is State.STANDING_BY


def latest(workers: Iterable[WorkerInstance]) -> list[WorkerInstance]:
    """The best instance of each service: a silent one may have been replaced."""
    best: dict[str, WorkerInstance] = {}
    for worker in sorted(workers, key=rank):
        best.setdefault(worker.service, worker)
    return list(best.values())

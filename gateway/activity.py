"""Activity of the services and health of the bus, sampled once a second for all pages."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal

from bus_schema.dialogue import MessageReceived, MessageSent
from bus_schema.envelope import Envelope
from bus_schema.fleet import AgentResult, State
from bus_schema.process import StepCompleted
from gateway.backend import DEAD_SUFFIX, Backend
from gateway.event_feed import MissedEvents, WorkerInstance, latest
from mindbus.bus.connection import NoBroker
from mindbus.management import ManagementUnavailable, QueueState

_SECONDS: Final = 60
_OVER_S: Final = 5
_TOOK: Final = 200
_MAX_OPEN: Final = 500


@dataclass(frozen=True)
class ServiceActivity:
    """Events per second over the last minute; median and 99th percentile of the durations of its work."""

    rates: tuple[float, ...] = ()
    p50_s: float | None = None
    p99_s: float | None = None


def quantile(values: Iterable[float], percent: int) -> float | None:
    """A percentile by nearest rank; None without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None


class ActivityCounter:
    """Counts events and durations of each service, second by second."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, deque[int]] = defaultdict(lambda: deque([0] * _SECONDS, maxlen=_SECONDS))
        self._took: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_TOOK))
        self._pending: dict[str, Envelope] = {}

    def tick(self) -> None:
        for counts in self._counts.values():
            counts.append(0)

    def receive(self, items: Iterable[Envelope | MissedEvents]) -> int:
        events = [item for item in items if not isinstance(item, MissedEvents)]
        for event in events:
            self._counts[event.service][-1] += 1
            took = self._time_of(event)
            if took is not None:
                self._took[event.service].append(took)
        return len(events)

    def now(self) -> dict[str, ServiceActivity]:
        return {service: self._pace(service, list(counts)) for service, counts in self._counts.items()}

    def _pace(self, service: str, counts: list[int]) -> ServiceActivity:
        rates = tuple(sum(counts[end - _OVER_S : end]) / _OVER_S for end in range(_OVER_S, len(counts) + 1))
        took = self._took.get(service, ())
        return ServiceActivity(rates, quantile(took, 50), quantile(took, 99))

    def _time_of(self, envelope: Envelope) -> float | None:
        data = envelope.data or {}
        if envelope.type == AgentResult.wire.type:
            return float(data.get("took_ms", 0)) / 1000
        if envelope.type == StepCompleted.wire.type:
            milliseconds = (data.get("context") or {}).get("execution_time_ms")
            return None if milliseconds is None else float(milliseconds) / 1000
        if envelope.type == MessageReceived.wire.type:
            self._pending[str(data.get("message_id"))] = envelope
            while len(self._pending) > _MAX_OPEN:
                self._pending.pop(next(iter(self._pending)))
        elif envelope.type == MessageSent.wire.type:
            received = self._pending.pop(str(data.get("in_reply_to")), None)
            return (envelope.time - received.time).total_seconds() if received else None
        return None


_SAMPLE_EVERY_S: Final = 1.0
_RATE_OVER_S: Final = 5
# The management API costs more than the events at hand.
_QUEUES_EVERY: Final = 5
_MAX_DEPTH: Final = 1000


@dataclass(frozen=True)
class BusHealth:
    """Health of the bus as a message."""

    state: Literal["ok", "warn", "err", "t3"] = "t3"
    sentence: str = "health.unknown"
    about: Mapping[str, str] = field(default_factory=dict)
    per_second: float = 0
    needing: int = 0
    lost_at: datetime | None = None


class ActivityMonitor:
    """Samples events every second and queues every five."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._feed = backend, backend.feed
        self.health = BusHealth()
        self.rates: deque[float] = deque(maxlen=120)
        self.depths: dict[str, deque[int]] = {}
        self.queues: list[QueueState] | None = None
        self._lost_at: datetime | None = None
        self._counter = ActivityCounter()

    def services(self) -> dict[str, ServiceActivity]:
        return self._counter.now()

    async def run(self) -> None:
        counted: deque[int] = deque(maxlen=_RATE_OVER_S)
        samples = 0
        with self._feed.listen() as listener:
            while True:
                self._counter.tick()
                counted.append(self._counter.receive(listener.take()))
                self.rates.append(sum(counted) / len(counted))
                if samples % _QUEUES_EVERY == 0:
                    await self._sample_queues()
                is_connected = self._feed.is_connected
                self._lost_at = None if is_connected else self._lost_at or datetime.now(UTC)
                health = health_of(
                    self._feed.workers, self.queues, is_connected=is_connected, per_second=self.rates[-1]
                )
                self.health = replace(health, lost_at=self._lost_at)
                samples += 1
                await asyncio.sleep(_SAMPLE_EVERY_S)

    async def _sample_queues(self) -> None:
        try:
            self.queues = await self._backend.queues()
        except (ManagementUnavailable, NoBroker):
            self.queues = None
        for queue in self.queues or ():
            self.depths.setdefault(queue.name, deque(maxlen=60)).append(queue.depth)


def count_dead(queues: Iterable[QueueState] | None) -> int:
    return sum(queue.depth for queue in queues or () if queue.name.endswith(DEAD_SUFFIX))


def health_of(
    workers: list[WorkerInstance], queues: list[QueueState] | None, *, is_connected: bool, per_second: float
) -> BusHealth:
    """The most severe problem, else healthy."""
    dead = count_dead(queues)
    if not is_connected:
        return BusHealth("err", "health.lost", needing=dead)
    at_work = BusHealth("ok", "health.ok", per_second=per_second, needing=dead)
    warned = replace(at_work, state="warn")
    if down := [worker.service for worker in latest(workers) if worker.is_silent]:
        about = {"who": ", ".join(down)}
        return replace(at_work, state="err", sentence="health.down", about=about, needing=dead + len(down))
    if unready := [worker.service for worker in latest(workers) if worker.state is State.UNREADY]:
        return replace(warned, sentence="health.unready", about={"who": ", ".join(unready)})
    if noted := [worker.service for worker in latest(workers) if worker.note]:
        return replace(warned, sentence="health.noted", about={"who": ", ".join(noted)})
    full = [queue for queue in queues or () if queue.depth > _MAX_DEPTH and not queue.name.endswith(DEAD_SUFFIX)]
    if full:
        return replace(warned, sentence="health.behind", about={"who": full[0].name})
    return replace(warned, sentence="health.dead", about={"n": str(dead)}) if dead else at_work

"""How the bus is, looked at once for all who look."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

from bus_schema.fleet import State
from gateway.feed import Feed, Seen
from gateway.ui.paces import Pace, Paces
from mindbus.management import QueueState
from mindbus.tasks import end

_LOOK_EVERY_S: Final = 1.0
_RATE_OVER_S: Final = 5
# Asking RabbitMQ costs more than looking at what has been heard.
_QUEUES_EVERY: Final = 5
_MANY_WAITING: Final = 1000


@dataclass(frozen=True)
class Health:
    """A sentence about the bus, with where its cause is shown."""

    state: Literal["ok", "warn", "err", "t3"] = "t3"
    sentence: str = "health.unknown"
    about: Mapping[str, str] = field(default_factory=dict)
    link: str = "/fleet"
    per_second: float = 0
    needing: int = 0
    lost_at: datetime | None = None


class LooksAtQueues(Protocol):
    """Whoever can tell how full the queues are; none where nobody can tell."""

    async def queues(self) -> list[QueueState] | None:
        """As they are now."""
        ...


class Pulse:
    """Feels it every second."""

    def __init__(self, feed: Feed, rabbit: LooksAtQueues) -> None:
        self._feed, self._rabbit = feed, rabbit
        self.health = Health()
        self.rates: deque[float] = deque(maxlen=120)
        self.depths: dict[str, deque[int]] = {}
        self.queues: list[QueueState] | None = None
        self._lost_at: datetime | None = None
        self._paces = Paces()
        self._beating: asyncio.Task[None] | None = None

    def paces(self) -> dict[str, Pace]:
        """How busy each service is."""
        return self._paces.now()

    def start(self) -> None:
        """Begin to look."""
        self._beating = asyncio.create_task(self._beat(), name="gateway pulse")

    async def stop(self) -> None:
        """Look no more."""
        if self._beating is not None:
            await end(self._beating)

    async def _beat(self) -> None:
        counted: deque[int] = deque(maxlen=_RATE_OVER_S)
        beats = 0
        with self._feed.listen() as news:
            while True:
                self._paces.tick()
                counted.append(self._paces.hear(news.taken()))
                self.rates.append(sum(counted) / len(counted))
                if beats % _QUEUES_EVERY == 0:
                    await self._look_at_queues()
                is_hearing = self._feed.is_hearing
                self._lost_at = None if is_hearing else self._lost_at or datetime.now(UTC)
                health = health_of(self._feed.workers, self.queues, is_hearing=is_hearing, per_second=self.rates[-1])
                self.health = replace(health, lost_at=self._lost_at)
                beats += 1
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _look_at_queues(self) -> None:
        self.queues = await self._rabbit.queues()
        for queue in self.queues or ():
            self.depths.setdefault(queue.name, deque(maxlen=60)).append(queue.depth)


def health_of(workers: list[Seen], queues: list[QueueState] | None, *, is_hearing: bool, per_second: float) -> Health:
    """The worst of what is wrong."""
    dead = sum(queue.depth for queue in queues or () if queue.name.endswith(".dead"))
    if not is_hearing:
        return Health("err", "health.lost", needing=dead)
    down = [worker.service for worker in latest(workers) if worker.is_silent]
    if down:
        return Health("err", "health.down", {"who": ", ".join(down)}, "/fleet", per_second, dead + len(down))
    unready = [worker.service for worker in latest(workers) if worker.state is State.UNREADY]
    if unready:
        return Health("warn", "health.unready", {"who": ", ".join(unready)}, "/fleet", per_second, dead)
    full = [queue for queue in queues or () if queue.depth > _MANY_WAITING and not queue.name.endswith(".dead")]
    if full:
        return Health("warn", "health.behind", {"who": full[0].name}, "/fleet", per_second, dead)
    if dead:
        return Health("warn", "health.dead", {}, "/fleet", per_second, dead)
    return Health("ok", "health.ok", {}, "/fleet", per_second, 0)


def latest(workers: list[Seen]) -> list[Seen]:
    """One of each service: the best of its instances, since a silent one may have been replaced."""
    best: dict[str, Seen] = {}
    for worker in workers:
        known = best.get(worker.service)
        if known is None or _rank(worker) < _rank(known):
            best[worker.service] = worker
    return list(best.values())


def _rank(worker: Seen) -> tuple[bool, bool, bool]:
    return worker.is_silent, worker.state is State.UNREADY, worker.state is State.STANDING_BY

"""Metrics of this process, one series per message type."""

import asyncio
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from mindbus.logs import logger

_PROMETHEUS = "prometheus_client"


@dataclass(frozen=True)
class Metric:
    """A metric of Prometheus, by which a process counts that has imported `prometheus_client`; `mindbus worker` has."""

    kind: Literal["Counter", "Gauge", "Histogram"]
    name: str
    documentation: str
    labels: tuple[str, ...] = ()


class Series(Protocol):
    """One series of a metric, as far as its kind allows."""

    def inc(self, amount: float = 1) -> None: ...
    def dec(self, amount: float = 1) -> None: ...
    def set(self, value: float) -> None: ...
    def observe(self, amount: float) -> None: ...


class Unread:
    """A series in a process that shows its metrics to nobody."""

    def inc(self, amount: float = 1) -> None:
        """Count nothing."""

    dec = observe = set = inc


PUBLISHED = Metric("Counter", "mindbus_published_total", "Messages confirmed by the broker", ("type",))
ENDED = Metric("Counter", "mindbus_handled_total", "Deliveries by how they ended", ("service", "type", "ending"))
TOOK = Metric("Histogram", "mindbus_handling_seconds", "Time in the handler", ("service", "type"))
WAITED = Metric("Histogram", "mindbus_waiting_seconds", "From sending to the first attempt", ("service", "type"))
RECALLED = Metric("Counter", "mindbus_recalls_total", "Searches of memory by what came", ("memory", "outcome"))
RATED = Metric("Counter", "mindbus_recalls_rated_total", "Feedback on searches, useful or useless", ("outcome",))
_UNREAD = Unread()


def series(metric: Metric, *labels: str) -> Series:
    """One series of a metric."""
    return _series(metric, labels) if _PROMETHEUS in sys.modules else _UNREAD


@cache
def _series(metric: Metric, labels: tuple[str, ...]) -> Series:
    """The series of Prometheus; finding it by its labels each time would cost more than counting."""
    registered = _registered(metric)
    found: Series = registered.labels(*labels) if labels else registered
    return found


@cache
def _registered(metric: Metric) -> Any:
    import prometheus_client

    return getattr(prometheus_client, metric.kind)(metric.name, metric.documentation, metric.labels)


LAG = Metric("Histogram", "mindbus_loop_lag_seconds", "How late the event loop wakes a sleeper")
_INTERVAL_S = 0.5
_ALARM_S = 0.5


async def watch_loop() -> None:
    """Measure the lag of the event loop for ever; log long blockages."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL_S
        await asyncio.sleep(_INTERVAL_S)
        lag_s = loop.time() - due
        series(LAG).observe(max(lag_s, 0))
        if lag_s > _ALARM_S:
            logger().warning("event loop was held up", lag_s=round(lag_s, 2))

"""Spans and metrics, one series per message type."""

import asyncio
import secrets
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from bus_schema.envelope import Envelope
from mindbus.logs import logger

_OPEN_TELEMETRY, _PROMETHEUS = "opentelemetry.trace", "prometheus_client"


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
    def observe(self, amount: float) -> None: ...


class Unread:
    """A series in a process that shows its metrics to nobody."""

    def inc(self, amount: float = 1) -> None:
        """Count nothing."""

    dec = observe = inc


PUBLISHED = Metric("Counter", "mindbus_published_total", "Messages confirmed by the broker", ("type",))
ENDED = Metric("Counter", "mindbus_handled_total", "Deliveries by how they ended", ("service", "type", "ending"))
TOOK = Metric("Histogram", "mindbus_handling_seconds", "Time in the handler", ("service", "type"))
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


@dataclass(frozen=True, slots=True)
class Parent:
    """The W3C trace context that a message carries."""

    traceparent: str
    tracestate: str | None = None


def current_parent(inherited: Envelope | None) -> Parent:
    """The context for a message that is sent now: the active span's, else the handled message's, else a new one."""
    # Tracing is an extra: whoever has set it up has imported it.
    if _OPEN_TELEMETRY in sys.modules and (active := _active_span()):
        return active
    if inherited is not None and inherited.traceparent:
        return Parent(inherited.traceparent, inherited.tracestate)
    noise = secrets.token_hex(24)
    return Parent(f"00-{noise[:32]}-{noise[32:]}-01")


def is_tracing() -> bool:
    """Whether OpenTelemetry tracing is set up in this process."""
    if _OPEN_TELEMETRY not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def handling_span(envelope: Envelope, service: str) -> AbstractContextManager[object]:
    """A consumer span whose parent is the sender's."""
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = {"traceparent": envelope.traceparent or "", "tracestate": envelope.tracestate or ""}
    return trace.get_tracer("mindbus").start_as_current_span(
        f"{service} {envelope.type}",
        context=TraceContextTextMapPropagator().extract(parent),
        kind=trace.SpanKind.CONSUMER,
        attributes={
            "messaging.system": "rabbitmq",
            "messaging.message.id": envelope.id,
            "mindbus.trace_id": envelope.mbtraceid or "",
        },
    )


def _active_span() -> Parent | None:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return Parent(carrier["traceparent"], carrier.get("tracestate"))


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

"""Spans and metrics, one series per message type."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import Counter, Histogram

from bus_schema.envelope import Envelope

_tracer = trace.get_tracer("mindbus")
_propagator = TraceContextTextMapPropagator()

PUBLISHED = Counter("mindbus_published_total", "Messages confirmed by the broker", ["type"])
ENDED = Counter("mindbus_handled_total", "Deliveries by how they ended", ["service", "type", "ending"])
TOOK = Histogram("mindbus_handling_seconds", "Time in the handler", ["service", "type"])


@dataclass(frozen=True, slots=True)
class Parent:
    """The W3C trace context that a message carries."""

    traceparent: str
    tracestate: str | None = None


def current_parent(inherited: Envelope | None) -> Parent:
    """The context for a message that is sent now: the active span's, else the handled message's, else a new one."""
    if trace.get_current_span().get_span_context().is_valid:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return Parent(carrier["traceparent"], carrier.get("tracestate"))
    if inherited is not None and inherited.traceparent:
        return Parent(inherited.traceparent, inherited.tracestate)
    return Parent(f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01")


@contextmanager
def handling_span(envelope: Envelope, service: str) -> Iterator[None]:
    """A consumer span whose parent is the sender's, and the time it took."""
    carrier = {"traceparent": envelope.traceparent or "", "tracestate": envelope.tracestate or ""}
    with (
        _tracer.start_as_current_span(
            f"{service} {envelope.type}",
            context=_propagator.extract(carrier),
            kind=trace.SpanKind.CONSUMER,
            attributes={
                "messaging.system": "rabbitmq",
                "messaging.message.id": envelope.id,
                "mindbus.trace_id": envelope.mbtraceid or "",
            },
        ),
        TOOK.labels(service, envelope.type).time(),
    ):
        yield

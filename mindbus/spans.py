"""OpenTelemetry spans, where tracing is set up: by OTEL_EXPORTER_OTLP_ENDPOINT, or by a program of one's own.

Where it is not, nothing of OpenTelemetry is imported, and a span costs a look at the loaded modules.
"""

import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from bus_schema.envelope import Envelope

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_OPEN_TELEMETRY = "opentelemetry.trace"
_NAME = "mindbus"
_FAILED = ("retried", "dead")
_NS = 1_000_000_000
# Worker states and metrics, told every few seconds, are part of no story.
_UNTRACED = ("mb.evt.fleet.heartbeat.", "mb.evt.fleet.metrics.")

SpanKind = Literal["INTERNAL", "CLIENT", "PRODUCER", "CONSUMER"]
NO_SPAN: AbstractContextManager[Any] = nullcontext()


class TracingNotInstalled(ImportError):
    """OTEL_EXPORTER_OTLP_ENDPOINT is set, but the exporter is missing: pip install 'mindbus[otel]'."""


def is_tracing() -> bool:
    """Whether OpenTelemetry tracing is set up in this process."""
    if _OPEN_TELEMETRY not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@contextmanager
def exporting(service: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Export the spans of a block to the collector that the environment names, under the name of a service.

    OTEL_SERVICE_NAME comes first; OTEL_TRACES_SAMPLER and the like are obeyed. Does nothing where no collector is
    named, OTEL_SDK_DISABLED is true, or somebody else has set up tracing. Raises TracingNotInstalled.
    """
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_disabled or is_tracing() or not any(environment.get(name) for name in ENDPOINTS):
        yield
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as missing:
        raise TracingNotInstalled(TracingNotInstalled.__doc__) from missing

    named = {} if environment.get("OTEL_SERVICE_NAME") else {"service.name": service}
    resource = Resource.create({"service.namespace": _NAME, "process.pid": os.getpid(), **named})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


def span(name: str, kind: SpanKind = "INTERNAL", **attributes: str | int | float) -> AbstractContextManager[Any]:
    """A span of a block within the span at hand; in the names of attributes write a point as two underscores."""
    if not is_tracing():
        return NO_SPAN
    from opentelemetry import trace

    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return trace.get_tracer(_NAME).start_as_current_span(name, kind=trace.SpanKind[kind], attributes=named)


def past_span(name: str, kind: SpanKind, took_s: float, failure: str, attributes: Mapping[str, Any]) -> None:
    """Record, within the span at hand, something that has just ended; `failure` is the kind of error, if it failed."""
    if not is_tracing():
        return
    from opentelemetry import trace

    ended = time.time_ns()
    past = trace.get_tracer(_NAME).start_span(
        name, kind=trace.SpanKind[kind], attributes=attributes, start_time=ended - int(took_s * _NS)
    )
    if failure:
        past.set_attribute("error.type", failure)
        past.set_status(trace.StatusCode.ERROR)
    past.end(ended)


def sending_span(wire_type: str, service: str) -> AbstractContextManager[Any]:
    """A producer span, of which the message carries the context; none for what is part of no story."""
    if wire_type.startswith(_UNTRACED):
        return NO_SPAN
    return span(
        f"send {_short(wire_type)}",
        "PRODUCER",
        messaging__system="rabbitmq",
        messaging__operation__name="send",
        messaging__operation__type="create",
        mindbus__worker=service,
    )


def handling_span(envelope: Envelope, service: str, queue: str, attempt: int = 1) -> AbstractContextManager[Any]:
    """A consumer span within that of the time which the message has waited, whose parent is the sender's."""
    if envelope.type.startswith(_UNTRACED) or not is_tracing():
        return NO_SPAN
    return _handling(envelope, service, queue, attempt)


@contextmanager
def _handling(envelope: Envelope, service: str, queue: str, attempt: int) -> Iterator[Any]:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {"traceparent": envelope.traceparent or "", "tracestate": envelope.tracestate or ""}
    tracer, now = trace.get_tracer(_NAME), time.time_ns()
    attributes: dict[str, Any] = {
        "messaging.system": "rabbitmq",
        "messaging.destination.name": queue,
        "messaging.message.id": envelope.id,
        "messaging.message.conversation_id": envelope.correlationid,
        "mindbus.worker": service,
        "mindbus.trace_id": envelope.mbtraceid or "",
        "mindbus.attempt": attempt,
    }
    sent = TraceContextTextMapPropagator().extract(carrier)
    kind, receive = trace.SpanKind.CONSUMER, attributes | {"messaging.operation.type": "receive"}
    # The sender's clock may be ahead.
    began = min(now, int(envelope.time.timestamp() * _NS))
    waiting = tracer.start_span(f"queue {queue}", sent, kind, receive, start_time=began)
    waiting.end(now)
    process = attributes | {"messaging.operation.name": "handle", "messaging.operation.type": "process"}
    within = trace.set_span_in_context(waiting)
    with tracer.start_as_current_span(f"handle {_short(envelope.type)}", within, kind, process) as handling:
        yield handling


def note_outcome(handling: Any, outcome: str, error: Exception | None) -> None:
    """Say how a delivery ended: failed where it is retried or dead, and the kind of error, but no word of its message.

    A command that is refused has been handled.
    """
    if handling is None:
        return
    from opentelemetry import trace

    handling.set_attribute("mindbus.outcome", outcome)
    if error is not None:
        handling.set_attribute("error.type", type(error).__name__)
    if outcome in _FAILED:
        handling.set_status(trace.StatusCode.ERROR)


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


def _active_span() -> Parent | None:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return Parent(carrier["traceparent"], carrier.get("tracestate"))


def _short(wire_type: str) -> str:
    """`dialogue.invoke` of `mb.cmd.dialogue.invoke.v1`."""
    return wire_type.split(".", 2)[-1].rpartition(".")[0]

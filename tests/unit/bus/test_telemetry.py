"""W3C trace context travels; spans hang together."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bus_schema.envelope import Envelope
from mindbus.bus.telemetry import current_parent, handling_span
from tests.raw_amqp import an_envelope

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_without_a_span_the_handled_messages_context_is_passed_on() -> None:
    handled = Envelope.model_validate(an_envelope(traceparent=PARENT, tracestate="a=b"))

    parent = current_parent(handled)

    assert (parent.traceparent, parent.tracestate) == (PARENT, "a=b")


def test_a_story_that_begins_gets_a_context_of_its_own() -> None:
    assert current_parent(None).traceparent != current_parent(None).traceparent


def test_a_handlers_span_is_the_child_of_the_senders_and_the_parent_of_what_it_sends() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    handled = Envelope.model_validate(an_envelope(traceparent=PARENT))

    with handling_span(handled, "greeter"):
        sent = current_parent(handled)

    (span,) = exporter.get_finished_spans()
    assert span.name == "greeter mb.cmd.greeter.greet.v1"
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "00f067aa0ba902b7"
    context = span.get_span_context()
    assert context is not None
    assert f"{context.span_id:016x}" in sent.traceparent
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in sent.traceparent

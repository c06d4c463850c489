"""W3C trace context travels; spans hang together, and only where a collector is named."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import literal, select

from bus_schema.envelope import Envelope
from mindbus.errors import TemporaryFailure
from mindbus.spans import current_parent, handling_span, note_outcome, past_span, sending_span, span
from mindbus.sql.database import Database
from mindbus.sql.statements import PreparedStatement
from tests.otlp_collector import collecting
from tests.raw_amqp import an_envelope

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = PARENT[:-2] + "00"
_EXPORTER = InMemorySpanExporter()


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """What has been traced in this process; OpenTelemetry takes a provider once."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
        trace.set_tracer_provider(provider)
    _EXPORTER.clear()
    yield _EXPORTER
    _EXPORTER.clear()


def parent_of(child: ReadableSpan) -> str:
    assert child.parent is not None
    return f"{child.parent.span_id:016x}"


def id_of(one: ReadableSpan) -> str:
    context = one.get_span_context()
    assert context is not None
    return f"{context.span_id:016x}"


def test_without_a_span_the_handled_messages_context_is_passed_on() -> None:
    handled = Envelope.model_validate(an_envelope(traceparent=PARENT, tracestate="a=b"))

    parent = current_parent(handled)

    assert (parent.traceparent, parent.tracestate) == (PARENT, "a=b")


def test_a_story_that_begins_gets_a_context_of_its_own() -> None:
    assert current_parent(None).traceparent != current_parent(None).traceparent


def test_handling_hangs_on_the_wait_in_the_queue_and_that_on_the_sender(exporter: InMemorySpanExporter) -> None:
    handled = Envelope.model_validate(an_envelope(traceparent=PARENT))

    with handling_span(handled, "greeter", "mb.q.greeter") as handling:
        with sending_span("mb.evt.greeter.greeted.v1", "greeter"):
            sent = current_parent(handled)
        note_outcome(handling, "handled", None)

    waiting, sending, finished = exporter.get_finished_spans()
    assert (waiting.name, finished.name) == ("queue mb.q.greeter", "handle greeter.greet")
    assert (parent_of(waiting), parent_of(finished)) == ("00f067aa0ba902b7", id_of(waiting))
    assert (sending.name, parent_of(sending)) == ("send greeter.greeted", id_of(finished))
    assert sent.traceparent == f"00-4bf92f3577b34da6a3ce929d0e0e4736-{id_of(sending)}-01"
    assert finished.status.is_unset
    assert (finished.attributes or {})["messaging.destination.name"] == "mb.q.greeter"


def test_a_message_that_is_tried_again_has_failed_and_a_refused_one_has_not(exporter: InMemorySpanExporter) -> None:
    envelope = Envelope.model_validate(an_envelope(traceparent=PARENT))
    for outcome in ("retried", "not_found"):
        with handling_span(envelope, "greeter", "mb.q.greeter") as handling:
            note_outcome(handling, outcome, TemporaryFailure("Anna's words"))

    failed, refused = (each for each in exporter.get_finished_spans() if each.name.startswith("handle"))
    assert (failed.status.is_ok, failed.status.is_unset, refused.status.is_unset) == (False, False, True)
    assert (failed.attributes or {})["error.type"] == "TemporaryFailure"
    assert "Anna" not in failed.to_json()


def test_what_the_sender_does_not_sample_is_not_traced_here_either(exporter: InMemorySpanExporter) -> None:
    unsampled = Envelope.model_validate(an_envelope(traceparent=UNSAMPLED))

    with handling_span(unsampled, "greeter", "mb.q.greeter"), span("SELECT", "CLIENT"):
        passed_on = current_parent(unsampled)
        past_span("chat small", "CLIENT", 0.5, "", {})

    assert exporter.get_finished_spans() == ()
    assert passed_on.traceparent.endswith("-00")


def test_states_of_workers_are_no_story(exporter: InMemorySpanExporter) -> None:
    with sending_span("mb.evt.fleet.heartbeat.v1", "greeter"):
        pass

    assert exporter.get_finished_spans() == ()


def test_a_past_span_lies_within_the_one_at_hand(exporter: InMemorySpanExporter) -> None:
    with span("outer"):
        past_span("chat small", "CLIENT", 0.5, "ModelFailure", {"gen_ai.request.model": "small"})

    call, outer = exporter.get_finished_spans()
    assert parent_of(call) == id_of(outer)
    assert call.start_time is not None
    assert call.end_time is not None
    assert call.end_time - call.start_time == pytest.approx(500_000_000)
    assert not call.status.is_ok


async def test_spans_of_statements_name_their_database_however_they_are_run(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'notes.db'}", "notes")
    prepared = PreparedStatement(select(literal(1)))

    await database.write(lambda connection: prepared.all(connection, {}))
    await database.read(lambda connection: connection.execute(select(literal(2))).all())
    async with database.transaction() as session:
        await session.execute(select(literal(3)))
    await database.dispose()

    told = {(each.name, (each.attributes or {}).get("db.namespace")) for each in exporter.get_finished_spans()}
    assert {("SELECT", "notes"), ("COMMIT", "notes")} <= told
    assert {namespace for _name, namespace in told} == {"notes"}


_PROGRAM = """
import os, sys
from mindbus.spans import exporting, is_tracing, span
with exporting("greeter", os.environ), span("a day", "CLIENT"):
    print(is_tracing(), "opentelemetry.sdk" in sys.modules)
"""


def told_by_a_program(**environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_one_variable_exports_and_without_it_nothing_is_imported() -> None:
    with collecting() as collector:
        exported = told_by_a_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
        renamed = told_by_a_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint, OTEL_SERVICE_NAME="other")
        disabled = told_by_a_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint, OTEL_SDK_DISABLED="true")
        silent = told_by_a_program()

    assert (exported, renamed, disabled, silent) == ("True True", "True True", "False False", "False False")
    assert [(each.name, each.service) for each in collector.spans] == [("a day", "greeter"), ("a day", "other")]

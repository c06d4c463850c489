"""Spans of statements, without their values, and of commits."""

from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.interfaces import ExecutionContext

from mindbus.spans import NO_SPAN, is_tracing, span

_SPAN = "mindbus_span"
_NAMESPACE = "mindbus_namespace"
_MAX_CHARS = 1000


def statement_span(text: str, system: str = "sqlite", namespace: str = "") -> AbstractContextManager[Any]:
    """A span of one statement, or of COMMIT; the values of its parameters are not in it."""
    if not is_tracing():
        return NO_SPAN
    operation = text.split(None, 1)[0].upper()
    return span(
        operation,
        "CLIENT",
        db__system__name=system,
        db__operation__name=operation,
        db__query__text=text[:_MAX_CHARS],
        **({"db__namespace": namespace} if namespace else {}),
    )


def namespace_of(of: Connection | Engine) -> str:
    """The name of the database, which is known where tracing was set up before it was opened."""
    return str(of.get_execution_options().get(_NAMESPACE, ""))


def trace_statements(engine: Engine, namespace: str) -> None:
    """Make a span of each statement that SQLAlchemy executes, where tracing is set up by now."""
    if not is_tracing():
        return
    system = engine.dialect.name
    engine.update_execution_options(**{_NAMESPACE: namespace})

    def begin(_connection: Any, _cursor: Any, text: str, _values: Any, context: ExecutionContext, _many: bool) -> None:
        began = statement_span(text, system, namespace)
        began.__enter__()
        setattr(context, _SPAN, began)

    def finish(*passed: Any) -> None:
        passed[4].__dict__.pop(_SPAN).__exit__(None, None, None)

    def fail(error: Any) -> None:
        if error.execution_context is not None and (began := error.execution_context.__dict__.pop(_SPAN, None)):
            # Only its kind: the words of an error quote values.
            began.__exit__(None, None, None)

    event.listen(engine, "before_cursor_execute", begin)
    event.listen(engine, "after_cursor_execute", finish)
    event.listen(engine, "handle_error", fail)

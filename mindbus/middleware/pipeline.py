"""The pipeline of middleware that wraps one message, and how a worker or a whole fleet adds its own."""

from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import entry_points

from mindbus.bus.context import MessageContext, deadline_of
from mindbus.bus.telemetry import handling_span, is_tracing
from mindbus.bus.transport import Outgoing
from mindbus.bus.worker import CallNext, Middleware
from mindbus.errors import Expired, TemporaryFailure

GROUP = "mindbus.middleware"


class RetryOn:
    """Raises TemporaryFailure in place of the given exceptions, so that the message is tried again after `delay`."""

    def __init__(self, *errors: type[Exception], delay: timedelta | None = None) -> None:
        self._errors, self._delay = errors, delay

    async def __call__(self, context: MessageContext, call_next: CallNext) -> Sequence[Outgoing]:
        try:
            return await call_next()
        except self._errors as error:
            raise TemporaryFailure(f"{type(error).__name__}: {error}", self._delay) from error


@cache
def fleet_middleware() -> tuple[Middleware, ...]:
    """The middleware of every worker on this machine: the entry points of the group `mindbus.middleware`, by name.

    Each names a class or function that takes nothing and returns a middleware. One that cannot be loaded raises, since
    a fleet must not run without, say, its authorisation.
    """
    points = sorted({(point.name, point.value): point for point in entry_points(group=GROUP)}.items())
    return tuple(point.load()() for _, point in points)


class Deadline:
    """Raises Expired instead of calling a handler after the deadline; duplicates are recognised before."""

    def __call__(self, context: MessageContext, call_next: CallNext) -> Awaitable[Sequence[Outgoing]]:
        deadline = deadline_of(context.envelope)
        if deadline is not None and deadline <= datetime.now(UTC):
            raise Expired(message=f"its deadline was {deadline.isoformat()}")
        return call_next()


class Tracing:
    """An OpenTelemetry consumer span whose parent is the sender's, if tracing is set up."""

    def __call__(self, context: MessageContext, call_next: CallNext) -> Awaitable[Sequence[Outgoing]]:
        # A span that records nothing would be the most expensive part of a delivery.
        return self._trace(context, call_next) if is_tracing() else call_next()

    async def _trace(self, context: MessageContext, call_next: CallNext) -> Sequence[Outgoing]:
        with handling_span(context.envelope, context.consumer):
            return await call_next()

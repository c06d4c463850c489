"""Tracing and metrics of one handling."""

from collections.abc import Sequence

from mindbus.bus.context import MessageContext
from mindbus.bus.telemetry import TOOK, handling_span, is_tracing, series
from mindbus.bus.transport import Outgoing
from mindbus.bus.worker import CallNext


class Tracing:
    """An OpenTelemetry consumer span whose parent is the sender's, if tracing is set up."""

    async def __call__(self, context: MessageContext, call_next: CallNext) -> Sequence[Outgoing]:
        # A span that records nothing would be the most expensive part of a delivery.
        if not is_tracing():
            return await call_next()
        with handling_span(context.envelope, context.consumer):
            return await call_next()


class Metrics:
    """The time in the handler, per service and message type."""

    async def __call__(self, context: MessageContext, call_next: CallNext) -> Sequence[Outgoing]:
        with series(TOOK, context.consumer, context.envelope.type).time():
            return await call_next()

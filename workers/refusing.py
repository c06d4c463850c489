"""A service's no, written down, then put into the bus's words."""

from collections.abc import Iterator
from contextlib import contextmanager

from mindbus.bus.context import MessageContext
from mindbus.bus.failures import Refused
from mindbus.logs import logger
from mindbus.refusal import Refusal


@contextmanager
def refusing(service: str, context: MessageContext, **about: str | None) -> Iterator[None]:
    """Raises Refused in the place of a Refusal; what it was about goes to the log alone."""
    try:
        yield
    except Refusal as no:
        logger().warning(
            "service refused",
            service=service,
            type=context.envelope.type,
            message_id=context.message_id,
            requester=context.requester,
            trace_id=context.trace_id,
            refusal=type(no).__name__,
            is_denied=no.is_denied,
            details=no.details,
            **about,
        )
        raise Refused(no.code, str(no), no.details) from no

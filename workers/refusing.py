"""A service's no, written down, then put into the bus's words."""

from collections.abc import Iterator
from contextlib import contextmanager

from mindbus.bus.context import MessageContext
from mindbus.errors import Rejected
from mindbus.logs import logger


@contextmanager
def refusing(service: str, context: MessageContext, **about: str | None) -> Iterator[None]:
    """Raises Rejected in the place of a Rejected; what it was about goes to the log alone."""
    try:
        yield
    except Rejected as no:
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
        raise Rejected(no.code, str(no), no.details) from no

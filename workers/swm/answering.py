"""Every answer of the working memory: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager

from memory.asker import Asker
from mindbus.bus.failures import Refused
from mindbus.bus.handling import Handling
from mindbus.logs import logger
from mindbus.refusal import Refusal


@contextmanager
def answering(handling: Handling) -> Iterator[Asker]:
    """Who asks; every no is written down, then put into the bus's words."""
    asker = Asker(handling.requester)
    try:
        yield asker
    except Refusal as no:
        logger().warning(
            "working memory refused",
            type=handling.envelope.type,
            message_id=handling.message_id,
            requester=asker.identity,
            refusal=type(no).__name__,
            is_denied=no.is_denied,
            details=no.details,
        )
        raise Refused(no.code, str(no), no.details) from no

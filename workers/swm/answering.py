"""Every answer of the working memory: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager

from mindbus.bus.context import MessageContext
from mindbus.principal import Principal
from workers.refusing import refusing


@contextmanager
def answering(context: MessageContext) -> Iterator[Principal]:
    """Who asks; every no is written down, then put into the bus's words."""
    with refusing("swm", context):
        yield Principal(context.requester)

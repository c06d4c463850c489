"""Every answer of storage: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager

from mindbus.bus.context import MessageContext
from mindbus.errors import TemporaryFailure
from mindbus.principal import Principal
from workers.refusing import refusing


@contextmanager
def answering(context: MessageContext, artifact_id: str | None = None) -> Iterator[Principal]:
    """Who asks; every no of storage is written down, then put into the bus's words."""
    principal = Principal(context.requester, context.trace_id)
    try:
        with refusing("storage", context, artifact_id=artifact_id):
            yield principal
    except OSError as trouble:
        raise TemporaryFailure(f"{type(trouble).__name__}: {trouble}") from trouble

"""Deadline: a command past its expiry is answered as expired and not carried out."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bus_schema.envelope import Envelope, Kind
from mindbus.bus.context import MessageContext
from mindbus.bus.transport import Outgoing
from mindbus.bus.worker import CallNext
from mindbus.errors import Expired


class Deadline:
    """Raises Expired instead of calling a handler after the deadline; duplicates are recognised before."""

    async def __call__(self, context: MessageContext, call_next: CallNext) -> Sequence[Outgoing]:
        deadline = deadline_of(context.envelope)
        if deadline is not None and deadline <= datetime.now(UTC):
            raise Expired(message=f"its deadline was {deadline.isoformat()}")
        return await call_next()


def deadline_of(envelope: Envelope | None) -> datetime | None:
    """A command's deadline; an event stays true however late it is received."""
    return envelope.expirytime if envelope is not None and envelope.mbkind is Kind.COMMAND else None

"""The principal of a message to storage."""

from mindbus.bus.context import MessageContext
from mindbus.principal import Principal


def principal_of(context: MessageContext) -> Principal:
    """The requester within the trace of its message."""
    return Principal(context.requester, context.trace_id)

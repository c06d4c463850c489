"""The principal of a message to the global memory."""

from mindbus.bus.context import MessageContext
from mindbus.principal import Principal

# Shared working memory caches units for others and applies their rights itself.
_TRUSTED = "swm"


def principal_of(context: MessageContext) -> Principal:
    """The requester; trusted is the working memory itself, not a requester that acts in its name."""
    envelope = context.envelope
    is_trusted = envelope.mbrequester == f"svc.{_TRUSTED}" and envelope.source.startswith(f"/mb/{_TRUSTED}/")
    return Principal(context.requester, is_trusted=is_trusted)

"""Every answer of long-term memory: how its no is put."""

from contextlib import AbstractContextManager

from mindbus.bus.context import MessageContext
from workers.refusing import refusing


def answering(context: MessageContext, episode_id: str | None = None) -> AbstractContextManager[None]:
    """Every no of memory is written down, then put into the bus's words."""
    return refusing("lsm", context, episode_id=episode_id)

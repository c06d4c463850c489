"""Every answer of long-term memory: how its no is put."""

from contextlib import AbstractContextManager

from mindbus.bus.handling import Handling
from workers.refusing import refusing


def answering(handling: Handling, episode_id: str | None = None) -> AbstractContextManager[None]:
    """Every no of memory is written down, then put into the bus's words."""
    return refusing("lsm", handling, episode_id=episode_id)

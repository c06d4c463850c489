"""Every answer of the working memory: who asks, how its no is put."""

from collections.abc import Iterator
from contextlib import contextmanager

from memory.asker import Asker
from mindbus.bus.handling import Handling
from workers.refusing import refusing


@contextmanager
def answering(handling: Handling) -> Iterator[Asker]:
    """Who asks; every no is written down, then put into the bus's words."""
    with refusing("swm", handling):
        yield Asker(handling.requester)

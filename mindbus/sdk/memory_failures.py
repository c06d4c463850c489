"""Why memory could not do what an agent asked."""

from bus_schema.replies import Code
from mindbus.errors import ReplyError


class MemoryAway(ReplyError):
    """Memory does not answer just now; go on without it, ask again later."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.UNAVAILABLE, reason)


class NoAnswer(MemoryAway):
    """It was asked as often as it takes, yet cannot do it just now."""


class Silence(NoAnswer):
    """Nothing was heard of it; what was asked may still be carried out."""


class CircuitOpen(MemoryAway):
    """It has failed so often that it is left in peace for a while."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


class LockLost(Exception):
    """The lease has ended before the work was done; nothing more may be written under this lock."""


class NotAtHand(ValueError):
    """Nearness of meaning or words is for the global memory: ask `retrieve_kems`."""


class NotOpen(RuntimeError):
    """The SDK is not on the bus; use `async with`, or give it a bus."""

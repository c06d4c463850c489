"""Rejections of the working memory."""

from bus_schema.replies import Code
from memory.redis_link import RedisAway
from mindbus.errors import Rejected


class LockNotFree(Rejected, code=Code.CONFLICT):
    """Somebody else holds the lock; wait longer with wait_ms, or come back after its lease."""


class LockNotHeld(Rejected, code=Code.CONFLICT):
    """The lock is not held by this token any more: its lease has ended, or it was released; stop what it guarded."""


class CounterFull(Rejected):
    """A counter stays within 2^53 either way; begin another."""


class NotYourSubscription(Rejected, code=Code.UNAUTHORIZED):
    """An agent subscribes, or unsubscribes, for itself alone."""


class NoSuchSubscription(Rejected, code=Code.NOT_FOUND):
    """There is no such subscription; it may have ended already."""


class CoordinationAway(Rejected, RedisAway, code=Code.UNAVAILABLE):
    """Locks, counters are unavailable while their Redis does not answer; nothing was changed for sure, so ask again."""


class TooManyWait(Rejected, code=Code.UNAVAILABLE):
    """So many wait for locks that nobody else can; come back later."""


class SharedMemoryAway(Rejected, code=Code.UNAVAILABLE):
    """Neither the cache nor the global memory answers; start the glm worker, or wait for it."""

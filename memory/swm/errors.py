"""Rejections of the working memory."""

from bus_schema.replies import Code
from memory.redis_link import RedisAway
from mindbus.errors import Rejected


class LockNotFree(Rejected):
    """Somebody else holds the lock; wait longer with wait_ms, or come back after its lease."""

    code = Code.CONFLICT


class LockNotHeld(Rejected):
    """The lock is not held by this token any more: its lease has ended, or it was released; stop what it guarded."""

    code = Code.CONFLICT


class CounterFull(Rejected):
    """A counter stays within 2^53 either way; begin another."""


class NotYourSubscription(Rejected):
    """An agent subscribes, or unsubscribes, for itself alone."""

    code = Code.UNAUTHORIZED


class NoSuchSubscription(Rejected):
    """There is no such subscription; it may have ended already."""

    code = Code.NOT_FOUND


class CoordinationAway(Rejected, RedisAway):
    """Locks, counters are unavailable while their Redis does not answer; nothing was changed for sure, so ask again."""

    code = Code.UNAVAILABLE


class TooManyWait(Rejected):
    """So many wait for locks that nobody else can; come back later."""

    code = Code.UNAVAILABLE


class SharedMemoryAway(Rejected):
    """Neither the cache nor the global memory answers; start the glm worker, or wait for it."""

    code = Code.UNAVAILABLE

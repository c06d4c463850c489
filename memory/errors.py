"""Errors of the memories."""

from bus_schema.replies import Code
from mindbus.errors import MindBusError, Rejected


class RedisAway(MindBusError, code=Code.UNAVAILABLE):
    """Redis does not answer; start it, or wait for it."""


class WrongRedis(Exception):
    """This Redis is set up for something else; see what it says, then change its settings, or name another."""


class NoSuchKem(Rejected, code=Code.NOT_FOUND):
    """There is no such unit, or it is not yours to read."""


class KemIdTaken(Rejected, code=Code.CONFLICT):
    """A unit of this id is not yours to write; leave the id out to get one."""


class NotYoursToWrite(Rejected, code=Code.UNAUTHORIZED):
    """Only its owner, or a writer that its owner has named, changes a unit; store one of your own."""


class HoldsLater(Rejected, code=Code.INVALID):
    """A unit that is to be superseded begins to hold later than the one that supersedes it; set its `valid_from`."""


class NotYoursToShare(Rejected, code=Code.UNAUTHORIZED):
    """Only its owner says who may read or write a unit."""


class NotTheOwner(Rejected, code=Code.UNAUTHORIZED):
    """A unit belongs to whoever stores it; leave the owner out, or be it."""


class KemVersionDiffers(Rejected, code=Code.CONFLICT):
    """The unit has changed since it was read; read it again, then decide anew."""


class ChangesDoNotFit(Rejected):
    """With these changes the unit would not hold together."""


class AnotherModel(Rejected, code=Code.CONFLICT):
    """Memory goes over to the model of its settings alone; set MINDBUS_EMBEDDING_MODEL for it, start it anew."""


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


class NoSuchEpisode(Rejected, code=Code.NOT_FOUND):
    """There is no such episode; mindbus episodes ls lists those that exist."""


class RawTurnsGone(Rejected, code=Code.NOT_FOUND):
    """The artifact with the raw turns has expired or cannot be read: restore a backup, or see mindbus episodes show."""


class MessageDiffers(Rejected, code=Code.CONFLICT):
    """The log has a message of this id with another text; messages never change, so use a new id."""


class EpisodeHasChanged(Rejected, code=Code.CONFLICT):
    """The episode has changed since it was read; read it again, then pack its current version."""


class NotTheNextLayer(Rejected, code=Code.CONFLICT):
    """Episodes go down one layer at a time: from hot to warm, from warm to cold."""


class AnchorsStay(Rejected):
    """An anchor never goes cold; remove the anchor first."""


class PackRejected(Rejected):
    """The pack does not match the episode; make it again from the raw turns. The episode has not changed."""


class NoSuchSearch(Rejected, code=Code.NOT_FOUND):
    """There is no such search of yours; only the requester of a search gives feedback on it."""


class NotFoundBySearch(Rejected):
    """The search did not return these turns; name turns of its result."""

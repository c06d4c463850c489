"""Rejections of the memory services."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class NoSuchKem(Rejected, code=Code.NOT_FOUND):
    """There is no such unit, or it is not yours to read."""


class KemIdTaken(Rejected, code=Code.CONFLICT):
    """A unit of this id is not yours to write; leave the id out to get one."""


class NotYoursToWrite(Rejected, code=Code.UNAUTHORIZED):
    """Only its owner, or a writer that its owner has named, changes a unit; store one of your own."""


class NotYoursToShare(Rejected, code=Code.UNAUTHORIZED):
    """Only its owner says who may read or write a unit."""


class NotTheOwner(Rejected, code=Code.UNAUTHORIZED):
    """A unit belongs to whoever stores it; leave the owner out, or be it."""


class KemVersionDiffers(Rejected, code=Code.CONFLICT):
    """The unit has changed since it was read; read it again, then decide anew."""


class ChangesDoNotFit(Rejected):
    """With these changes the unit would not hold together."""


class WrongVector(Rejected):
    """Memory compares vectors of one model alone; leave the vector out, or make it with this model."""


class AnotherModel(Rejected, code=Code.CONFLICT):
    """Memory goes over to the model of its settings alone; set MINDBUS_EMBEDDING_MODEL for it, start it anew."""

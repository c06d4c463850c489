"""Rejections of the memory services."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class NoSuchKem(Rejected):
    """There is no such unit, or it is not yours to read."""

    code = Code.NOT_FOUND


class KemIdTaken(Rejected):
    """A unit of this id is not yours to write; leave the id out to get one."""

    code = Code.CONFLICT


class NotYoursToWrite(Rejected):
    """Only its owner, or a writer that its owner has named, changes a unit; store one of your own."""

    code = Code.UNAUTHORIZED


class NotYoursToShare(Rejected):
    """Only its owner says who may read or write a unit."""

    code = Code.UNAUTHORIZED


class NotTheOwner(Rejected):
    """A unit belongs to whoever stores it; leave the owner out, or be it."""

    code = Code.UNAUTHORIZED


class KemVersionDiffers(Rejected):
    """The unit has changed since it was read; read it again, then decide anew."""

    code = Code.CONFLICT


class ChangesDoNotFit(Rejected):
    """With these changes the unit would not hold together."""


class WrongVector(Rejected):
    """Memory compares vectors of one model alone; leave the vector out, or make it with this model."""


class AnotherModel(Rejected):
    """Memory goes over to the model of its settings alone; set MINDBUS_EMBEDDING_MODEL for it, start it anew."""

    code = Code.CONFLICT

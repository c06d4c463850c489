"""Errors of long-term memory."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class NoSuchEpisode(Rejected, code=Code.NOT_FOUND):
    """There is no such episode; mindbus episodes ls lists those that exist."""


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

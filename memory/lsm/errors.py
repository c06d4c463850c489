"""Errors of long-term memory."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class NoSuchEpisode(Rejected):
    """There is no such episode; mindbus episodes ls lists those that exist."""

    code = Code.NOT_FOUND


class MessageDiffers(Rejected):
    """The log has a message of this id with another text; messages never change, so use a new id."""

    code = Code.CONFLICT


class EpisodeHasChanged(Rejected):
    """The episode has changed since it was read; read it again, then pack its current version."""

    code = Code.CONFLICT


class NotTheNextLayer(Rejected):
    """Episodes go down one layer at a time: from hot to warm, from warm to cold."""

    code = Code.CONFLICT


class AnchorsStay(Rejected):
    """An anchor never goes cold; remove the anchor first."""


class PackRejected(Rejected):
    """The pack does not match the episode; make it again from the raw turns. The episode has not changed."""


class NoSuchSearch(Rejected):
    """There is no such search of yours; only the requester of a search gives feedback on it."""

    code = Code.NOT_FOUND


class NotFoundBySearch(Rejected):
    """The search did not return these turns; name turns of its result."""

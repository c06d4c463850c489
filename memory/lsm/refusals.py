"""The ways in which long-term memory says no."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class NoSuchEpisode(Rejected):
    """There is no such episode; mindbus episodes ls lists those that there are."""

    code = Code.NOT_FOUND


class SaidOtherwise(Rejected):
    """A message of this id is in the log with other words; what was said stays said, so give this one its own id."""

    code = Code.CONFLICT


class EpisodeHasChanged(Rejected):
    """The episode has changed since it was read; read it again, then pack what it is now."""

    code = Code.CONFLICT


class NotTheNextLayer(Rejected):
    """Episodes go down one layer at a time: from hot to warm, from warm to cold."""

    code = Code.CONFLICT


class AnchorsStay(Rejected):
    """An anchor never goes cold; have it be none first."""


class PackDoesNotHold(Rejected):
    """The pack is not what the episode says; make it anew from the raw turns. The episode is as it was."""


class NotACursor(Rejected):
    """The cursor is not one that this list has given; begin without one."""


class NoSuchSearch(Rejected):
    """There is no such search of yours; feedback is for whoever has searched."""

    code = Code.NOT_FOUND


class NotFoundBySearch(Rejected):
    """The search has not returned these turns; name those of its answer that were of use."""

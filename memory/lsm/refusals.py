"""The ways in which long-term memory says no."""

from bus_schema.replies import Code
from mindbus.refusal import Refusal


class NoSuchEpisode(Refusal):
    """There is no such episode; mindbus episodes ls lists those that there are."""

    code = Code.NOT_FOUND


class SaidOtherwise(Refusal):
    """A message of this id is in the log with other words; what was said stays said, so give this one its own id."""

    code = Code.CONFLICT


class EpisodeHasChanged(Refusal):
    """The episode has changed since it was read; read it again, then pack what it is now."""

    code = Code.CONFLICT


class NotTheNextLayer(Refusal):
    """Episodes go down one layer at a time: from hot to warm, from warm to cold."""

    code = Code.CONFLICT


class AnchorsStay(Refusal):
    """An anchor never goes cold; have it be none first."""


class PackDoesNotHold(Refusal):
    """The pack is not what the episode says; make it anew from the raw turns. The episode is as it was."""


class NotACursor(Refusal):
    """The cursor is not one that this list has given; begin without one."""


class NoSuchSearch(Refusal):
    """There is no such search of yours; feedback is for whoever has searched."""

    code = Code.NOT_FOUND


class NotFoundBySearch(Refusal):
    """The search has not returned these turns; name those of its answer that were of use."""

"""The ways in which the histories say no."""

from bus_schema.replies import Code
from mindbus.errors import Rejected


class BrokenHistory(Rejected):
    """What is kept under this key is no list of messages; see who else writes there, then clear it."""

    code = Code.CONFLICT


class NotForAgents(Rejected):
    """Services write histories, people look after them; a sub-agent is given what it is to know."""

    code = Code.UNAUTHORIZED


class HistoriesAway(Exception):
    """The Redis of the histories does not answer; nothing is half written, so ask again once it does."""

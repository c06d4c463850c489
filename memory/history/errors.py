"""Errors of the histories."""

from datetime import timedelta

from bus_schema.replies import Code
from memory.redis_link import RedisAway
from mindbus.errors import Rejected, TemporaryFailure


class BrokenHistory(Rejected):
    """What is kept under this key is no list of messages; see who else writes there, then clear it."""

    code = Code.CONFLICT


class NotForAgents(Rejected):
    """Services write histories, people look after them; a sub-agent is given what it is to know."""

    code = Code.UNAUTHORIZED


class HistoriesAway(TemporaryFailure, RedisAway):
    """The Redis of the histories does not answer; nothing is half written, so ask again once it does."""

    def __init__(self, reason: str) -> None:
        # Readers wait for the answer: try again soon.
        super().__init__(f"{self.__doc__} ({reason})", timedelta(seconds=1))

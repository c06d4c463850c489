"""What memory knows of a matter, for whoever is about to speak or to write."""

import secrets

from bus_schema.glm import FoundKem, KemPage, RetrieveKems
from bus_schema.kem_query import KemQuery, NoneOf
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.logs import logger
from mindbus.sdk.aside import aside
from mindbus.sdk.breaker import Breaker
from mindbus.sdk.memory_failures import MemoryAway, NoAnswer

_LONGEST_QUESTION = 2000
_LEFT_ALONE_S = 15.0


class Recall:
    """Asks in the name of the person for whom it is, so that nothing comes up but what they may read.

    Memory is a help, not a need: where it is away, slow or was never started, nothing is remembered. Nor is it asked
    again for a while, so that not everybody waits for it in vain.
    """

    def __init__(self, bus: Client, within_s: float, breaker: Breaker | None = None) -> None:
        self._bus, self._within_s = bus, within_s
        self._breaker = breaker or Breaker(opens_after=1, opens_for_s=_LEFT_ALONE_S)

    async def about(self, question: str, identity: str, limit: int = 8) -> tuple[FoundKem, ...]:
        """What comes nearest, the best first, without what is known to hold no longer; `within_s` of 0: nothing."""
        wanted = question.strip()[:_LONGEST_QUESTION]
        if not wanted or not self._within_s:
            return ()
        query = RetrieveKems(
            query=KemQuery(text_query=wanted, metadata_filters=NoneOf(NOT={"status": "superseded"})),
            page_size=limit,
            explain=True,
        )
        try:
            with self._breaker.watching():
                return (await aside(secrets.token_hex(8), lambda: self._asked(query, identity))).items
        except MemoryAway as away:
            logger().warning("nothing is remembered", reason=str(away))
            return ()

    async def _asked(self, query: RetrieveKems, identity: str) -> KemPage:
        try:
            return await self._bus.acting_as(identity).request(query, timeout_s=self._within_s)
        except (BusUnavailable, ReplyError) as silence:
            raise NoAnswer(str(silence)) from silence

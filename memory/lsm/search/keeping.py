"""What searches leave behind, on its way into the database."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from bus_schema.lsm_events import EpisodeReactivated, EpisodeTouched
from bus_schema.lsm_search import SearchEpisodes
from memory.lsm.search.finding import Found
from memory.lsm.search.searches import Searches
from memory.lsm.waking import Waking
from mindbus.logs import logger
from mindbus.sql.database import DatabaseAway


@dataclass(frozen=True, slots=True)
class SearchMade:
    """Who has asked for what, when; what was found."""

    search_id: str
    query: SearchEpisodes
    requester: str
    at: datetime
    found: Found


class Keeping:
    """A `Follower` of the log that writes behind the answers: nobody waits for it but who has to say something of one.

    With a process that dies in between goes a search that nobody can learn from, an access of what it has found.
    """

    def __init__(self, searches: Searches, waking: Waking) -> None:
        self.searches, self.waking = searches, waking
        self._waiting: dict[str, SearchMade] = {}
        self._untold: list[EpisodeTouched | EpisodeReactivated] = []
        self._is_due = asyncio.Event()
        self._turn = asyncio.Lock()

    def put(self, asked: SearchMade) -> None:
        """To be written soon; the same search again changes nothing."""
        self._waiting.setdefault(asked.search_id, asked)
        self._is_due.set()

    def recorded(self, _chat_id: str) -> None:
        """As in Follower; what was found before is what was found."""

    def forgotten(self, chat_id: str | None) -> None:
        """As in Follower."""
        for search_id, asked in list(self._waiting.items()):
            if chat_id in (None, asked.query.chat_id):
                del self._waiting[search_id]

    async def step(self) -> list[EpisodeTouched | EpisodeReactivated]:
        """Wait for a search, write it down; what is to be told. Raises DatabaseAway; then it waits on."""
        await self._is_due.wait()
        search_id = next(iter(self._waiting), None)
        if search_id is None:
            self._is_due.clear()
        else:
            await self.write(search_id)
        told, self._untold = self._untold, []
        return told

    async def write(self, search_id: str) -> None:
        """Keep a search, count what it has found as used; nothing where that is done. Raises DatabaseAway.

        What there is to tell of it comes with the next step.
        """
        async with self._turn:
            asked = self._waiting.get(search_id)
            if asked is None:
                return
            async with self.searches.database.at_hand():
                is_new = await self.searches.keep(asked.query, asked.requester, asked.at, asked.found)
                is_used = is_new and asked.query.touch
                told = await self.waking.touch(asked.found.touched, asked.at, search_id) if is_used else []
            self._waiting.pop(search_id, None)
            self._untold += told

    async def close(self) -> None:
        """Write down what waits, as far as the database is there."""
        try:
            for search_id in list(self._waiting):
                await self.write(search_id)
        except DatabaseAway as away:
            logger().warning("searches are not kept", searches=len(self._waiting), reason=str(away))

"""Search log: finished searches, kept for feedback, and the accesses that they count as."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from bus_schema.conversations import AnswerRated
from bus_schema.lsm_events import EpisodeReactivated, EpisodeTouched
from bus_schema.lsm_search import Feedback, FoundEpisodes, SearchEpisodes
from memory.errors import NoSuchSearch, NotFoundBySearch
from memory.lsm.layer_transitions import Reactivation
from memory.lsm.log_changes import LogListener
from memory.lsm.tables import ChatRow, EpisodeOfTurnRow, SearchRow
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.errors import DatabaseAway
from mindbus.sql.tables import insert_or_ignore


@dataclass(frozen=True, slots=True)
class FinishedSearch:
    """A search with its answer and what the log keeps of it: hits with their layers, episodes that count as used."""

    search_id: str
    query: SearchEpisodes
    requester: str
    at: datetime
    answer: FoundEpisodes
    hits: Sequence[Mapping[str, str]]
    touched: Sequence[str]


class SearchLog(LogListener):
    """Write-behind log, so that no answer waits for a write.

    A process that dies loses the searches not yet written: no feedback on them, no access of what they found.
    """

    def __init__(self, database: Database, reactivation: Reactivation) -> None:
        self.database, self.reactivation = database, reactivation
        self._pending: dict[str, FinishedSearch] = {}
        self._events: list[EpisodeTouched | EpisodeReactivated] = []
        self._has_work = asyncio.Event()
        self._lock = asyncio.Lock()

    def on_erased(self, chat_id: str | None) -> None:
        """Drop the pending searches of the chat, or all."""
        for search_id, search in list(self._pending.items()):
            if chat_id in (None, search.query.chat_id):
                del self._pending[search_id]

    def put(self, search: FinishedSearch) -> None:
        """Queue a search for writing; a repeated id changes nothing."""
        self._pending.setdefault(search.search_id, search)
        self._has_work.set()

    @asynccontextmanager
    async def step(self) -> AsyncIterator[list[EpisodeTouched | EpisodeReactivated]]:
        """Wait for a search, write it in the current transaction; the events to publish in the same.

        Search and events stay queued until the block has ended well, which is after the commit. Raises DatabaseAway.
        """
        await self._has_work.wait()
        async with self._lock:
            search = next(iter(self._pending.values()), None)
            written = [] if search is None else await self._write(search)
            earlier = len(self._events)
            yield [*self._events, *written]
            del self._events[:earlier]
            if search is not None:
                self._pending.pop(search.search_id, None)
            if not self._pending:
                self._has_work.clear()

    async def write(self, search_id: str) -> None:
        """Write a search if it is queued, in a transaction of its own. Raises DatabaseAway.

        The next `step` yields its events.
        """
        async with self._lock:
            search = self._pending.get(search_id)
            if search is None:
                return
            async with self.database.at_hand():
                events = await self._write(search)
            self._pending.pop(search_id, None)
            self._events += events
            self._has_work.set()

    async def take_feedback(self, feedback: Feedback, requester: str) -> list[EpisodeTouched | EpisodeReactivated]:
        """Store feedback in the current transaction, count an access of each episode that was used for the first time.

        Raises NoSuchSearch, NotFoundBySearch.
        """
        query = select(SearchRow).where(SearchRow.search_id == feedback.search_id).with_for_update()
        row = await self.database.session.scalar(query)
        if row is None or row.requester != requester:
            raise NoSuchSearch(is_denied=row is not None, search_id=feedback.search_id)
        returned = {hit["raw_log_id"] for hit in row.hits}
        if unknown := sorted(set(feedback.used) - returned):
            raise NotFoundBySearch(raw_log_ids=unknown[:10])
        touched = set((row.feedback or {}).get("touched", ()))
        new = await self._episodes_of(feedback.used) - touched if feedback.touch else set[str]()
        reported = {"used": sorted(set(feedback.used)), "touched": sorted(touched | new)}
        row.feedback = (row.feedback or {}) | reported
        return await self.reactivation.touch(new, row.at, row.search_id)

    async def take_rating(self, event: AnswerRated) -> bool:
        """Store a rating beside the feedback, in the current transaction; whether it is about turns that were found.

        A rating stays when feedback comes later; one that is older than the rating that is known changes nothing.
        """
        query = select(SearchRow).where(SearchRow.search_id == event.search_id).with_for_update()
        row = await self.database.session.scalar(query)
        if row is None or row.chat_id != event.user_id:
            logger().info("rating of a search that is not known", search_id=event.search_id)
            return False
        found = {hit["raw_log_id"] for hit in row.hits}
        known, used = row.feedback or {}, sorted(found.intersection(event.used))
        rated_at = event.rated_at.timestamp()
        if not used or known.get("rating", {}).get("at", 0.0) >= rated_at:
            return False
        row.feedback = known | {"rating": {"value": event.rating, "at": rated_at, "used": used}}
        return True

    async def _episodes_of(self, raw_log_ids: Sequence[str]) -> set[str]:
        query = select(EpisodeOfTurnRow.episode_id).where(EpisodeOfTurnRow.raw_log_id.in_(raw_log_ids))
        return set(await self.database.session.scalars(query))

    async def close(self) -> None:
        try:
            for search_id in list(self._pending):
                await self.write(search_id)
        except DatabaseAway as error:
            logger().warning("searches are not logged", searches=len(self._pending), reason=str(error))

    async def _write(self, search: FinishedSearch) -> list[EpisodeTouched | EpisodeReactivated]:
        if not (await self._insert(search) and search.query.touch):
            return []
        return await self.reactivation.touch(search.touched, search.at, search.search_id)

    async def _insert(self, search: FinishedSearch) -> bool:
        """Whether the search is new, of a chat that has not been erased meanwhile."""
        session = self.database.session
        chat = select(ChatRow.chat_id).where(ChatRow.chat_id == search.query.chat_id)
        if await session.scalar(chat.with_for_update(key_share=True, read=True)) is None:
            return False
        values = {
            "search_id": search.search_id,
            "requester": search.requester,
            "chat_id": search.query.chat_id,
            "at": search.at,
            "query": search.query.query,
            "unpacked": search.answer.unpacked,
            "hits": list(search.hits),
        }
        new = insert_or_ignore(session, SearchRow).values(values)
        return await session.scalar(new.returning(SearchRow.search_id)) is not None

"""Searches as they are kept: who asked, what was found, what of it was of use."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select

from bus_schema.lsm_search import Feedback, SearchEpisodes, TuneReport
from memory.lsm.refusals import NoSuchSearch, NotFoundBySearch
from memory.lsm.search.asked import asked
from memory.lsm.search.chat_index import ChatIndex
from memory.lsm.search.finding import Found
from memory.lsm.search.learning import Lesson, fitted, recall
from memory.lsm.search.question_vectors import QuestionVectors
from memory.lsm.search.ranking import ranked, worded
from memory.lsm.search.shelf import Shelf
from memory.lsm.search.weights import SHIPPED, Weights
from memory.lsm.tables import ChatRow, SearchRow, SearchWeightsRow
from mindbus.sql.database import Database
from mindbus.sql.inserting import insert_unless_there

_NAME = "search"
_MOST_LESSONS = 1000
# Every so many searches one is held out.
_HELD_OUT = 3
_LEAST_LESSONS = 12


class Searches:
    """Learns from feedback."""

    def __init__(self, database: Database, shelf: Shelf, questions: QuestionVectors) -> None:
        self.database, self.shelf, self.questions = database, shelf, questions
        self._weights: Weights | None = None

    async def weights(self) -> Weights:
        """Those in use. Raises DatabaseAway."""
        if self._weights is None:
            async with self.database.reading() as session:
                row = await session.get(SearchWeightsRow, _NAME)
            # A signal that came after the fitting is worth what it is shipped with.
            self._weights = dict(SHIPPED) | ({} if row is None else row.value)
        return self._weights

    def forget(self) -> None:
        """Read the weights anew."""
        self._weights = None

    async def keep(self, query: SearchEpisodes, requester: str, at: datetime, found: Found) -> bool:
        """Within the transaction at hand; whether it was new, of a chat that nobody had forgotten meanwhile."""
        session = self.database.session
        chat = select(ChatRow.chat_id).where(ChatRow.chat_id == query.chat_id)
        if await session.scalar(chat.with_for_update(key_share=True, read=True)) is None:
            return False
        values = {
            "search_id": found.answer.search_id,
            "requester": requester,
            "chat_id": query.chat_id,
            "at": at,
            "query": query.query,
            "unpacked": found.answer.unpacked,
            "hits": list(found.hits),
        }
        new = insert_unless_there(session, SearchRow).values(values)
        return await session.scalar(new.returning(SearchRow.search_id)) is not None

    async def take(self, feedback: Feedback, requester: str) -> None:
        """Within the transaction of the message at hand. Raises NoSuchSearch, NotFoundBySearch."""
        query = select(SearchRow).where(SearchRow.search_id == feedback.search_id).with_for_update()
        row = await self.database.session.scalar(query)
        if row is None or row.requester != requester:
            raise NoSuchSearch(is_denied=row is not None, search_id=feedback.search_id)
        found = {hit["raw_log_id"] for hit in row.hits}
        if strange := sorted(set(feedback.used) - found):
            raise NotFoundBySearch(raw_log_ids=strange[:10])
        row.feedback = {"used": sorted(set(feedback.used))}

    async def tune(self, *, apply: bool) -> TuneReport:
        """Within the transaction of the message at hand."""
        before = dict(await self.weights())
        lessons = await self._lessons()
        held_out = lessons[::_HELD_OUT]
        taught = [lesson for number, lesson in enumerate(lessons) if number % _HELD_OUT]
        if len(lessons) < _LEAST_LESSONS:
            return _report(
                lessons, held_out, before, before, reason=f"it takes {_LEAST_LESSONS} searches with used turns"
            )
        after = await asyncio.to_thread(fitted, taught, before)
        report = _report(lessons, held_out, before, after)
        is_better = (report.recall_after or 0.0) > (report.recall_before or 0.0)
        if not is_better:
            return report.model_copy(update={"reason": "searches that were held out gain nothing"})
        if not apply:
            return report.model_copy(update={"reason": "better; not asked to apply it"})
        await self._adopt(after)
        return report.model_copy(update={"applied": True})

    async def _adopt(self, after: dict[str, float]) -> None:
        session = self.database.session
        row = await session.get(SearchWeightsRow, _NAME, with_for_update=True)
        if row is None:
            session.add(SearchWeightsRow(name=_NAME, value=after, version=1))
        else:
            row.value, row.version = after, row.version + 1
        self._weights = after

    async def _lessons(self) -> list[Lesson]:
        query = (
            select(SearchRow)
            .where(SearchRow.feedback.is_not(None))
            .order_by(SearchRow.at.desc(), SearchRow.search_id)
            .limit(_MOST_LESSONS)
        )
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        lessons = []
        for row in rows:
            used = (row.feedback or {}).get("used", [])
            if used and (lesson := await self._lesson(row, used)) is not None:
                lessons.append(lesson)
        return lessons

    async def _lesson(self, row: SearchRow, used: Sequence[str]) -> Lesson | None:
        """The search once more, as the index is now."""
        vector = await self.questions.of(row.query)
        async with self.shelf.index(row.chat_id, self.questions.model) as index:
            return await asyncio.to_thread(_lesson_of, index, row, used, vector)


def _lesson_of(index: ChatIndex, row: SearchRow, used: Sequence[str], vector: bytes | None) -> Lesson | None:
    places = [index.places[key] for key in used if key in index.places]
    if not places:
        return None
    found = ranked(index, worded(index, asked(row.query, index.speakers(), row.at)), vector, SHIPPED, wanted=0)
    return Lesson(found.signals, index.words.copy(), places)


def _report(
    lessons: Sequence[Lesson], held_out: Sequence[Lesson], before: Weights, after: Weights, *, reason: str = ""
) -> TuneReport:
    return TuneReport(
        queries=len(lessons),
        held_out=len(held_out),
        weights_before=dict(before),
        weights_after=dict(after),
        recall_before=recall(held_out, before),
        recall_after=recall(held_out, after),
        applied=False,
        reason=reason,
    )

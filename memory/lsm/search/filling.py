"""Turns get a vector in the background: whoever records one never waits for a model."""

import asyncio
from collections import defaultdict, deque
from typing import NamedTuple

from sqlalchemy import delete, func, insert, select

from memory.lsm.search.question_vectors import QuestionVectors
from memory.lsm.search.shelf import Shelf
from memory.lsm.settling import look_again
from memory.lsm.tables import TurnRow, TurnVectorRow, wants_vector
from mindbus.sql.database import Database

_BATCH = 16
# What waits is looked up in larger portions, since looking passes by all that has a vector.
_PORTION = 512


class _Waiting(NamedTuple):
    raw_log_id: str
    chat_id: str
    speaker: str | None
    content: str

    @property
    def text(self) -> str:
        return f"{self.speaker}: {self.content}" if self.speaker else self.content


class Filling:
    """Wakes when turns are recorded; a `Follower` of the log."""

    def __init__(self, database: Database, questions: QuestionVectors, shelf: Shelf) -> None:
        self.database, self.questions, self.shelf = database, questions, shelf
        self._due = asyncio.Event()
        self._due.set()
        self._waiting: deque[_Waiting] = deque()

    def recorded(self, chat_id: str) -> None:
        """As in Follower; a chat of which nothing waits yet has its turn at once."""
        self._due.set()
        if all(each.chat_id != chat_id for each in self._waiting):
            self._waiting.clear()

    def forgotten(self, _chat_id: str | None) -> None:
        """As in Follower; what is embedded meanwhile finds its turn gone."""
        self._waiting.clear()

    async def forget_others(self) -> None:
        """What another model has made is made anew."""
        if self.questions.model is None:
            return
        others = delete(TurnVectorRow).where(TurnVectorRow.model != self.questions.model)
        async with self.database.transaction() as session:
            await session.execute(others.execution_options(synchronize_session=False))

    async def step(self) -> bool:
        """Embed a batch; whether there was any. Raises EmbedderFailure, DatabaseAway."""
        await self._due.wait()
        embedder = self.questions.embedder
        if not self._waiting:
            self._due.clear()
            if embedder is None:
                return False
            self._waiting.extend(await self._wanting())
        if embedder is None or not self._waiting:
            return False
        self._due.set()
        batch = [self._waiting[number] for number in range(min(_BATCH, len(self._waiting)))]
        vectors = await embedder.passages([each.text for each in batch])
        made = {each.raw_log_id: vector.raw for each, vector in zip(batch, vectors, strict=True)}
        await self._keep(made, embedder.space.model)
        chats: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
        for each in batch:
            chats[each.chat_id][each.raw_log_id] = made[each.raw_log_id]
            if self._waiting and self._waiting[0] is each:
                self._waiting.popleft()
        for chat_id, of_chat in chats.items():
            self.shelf.put_vectors(chat_id, of_chat)
        return True

    async def _wanting(self) -> list[_Waiting]:
        """Of each chat the same share, so that a large import keeps no other chat waiting.

        Of each in the order of arrival, so that an index is extended rather than mended.
        """
        place = func.row_number().over(partition_by=TurnRow.chat_id, order_by=TurnRow.position).label("place")
        first = (
            select(TurnRow.id, place)
            .outerjoin(TurnVectorRow, TurnVectorRow.raw_log_id == TurnRow.id)
            .where(TurnVectorRow.raw_log_id.is_(None), wants_vector())
            .order_by(place)
            .limit(_PORTION)
            .subquery()
        )
        query = (
            select(TurnRow.id, TurnRow.chat_id, TurnRow.speaker, TurnRow.content)
            .join(first, first.c.id == TurnRow.id)
            .order_by(first.c.place, TurnRow.chat_id)
        )
        async with self.database.reading() as session:
            return [_Waiting(*row) for row in await session.execute(query)]

    async def _keep(self, made: dict[str, bytes], model: str) -> None:
        async with self.database.transaction() as session:
            # Whoever has the turn's user forgotten waits until these are in, then finds them.
            there = select(TurnRow.id).where(TurnRow.id.in_(made)).with_for_update(key_share=True, read=True)
            has = select(TurnVectorRow.raw_log_id).where(TurnVectorRow.raw_log_id.in_(made))
            ids = set(await session.scalars(there)) - set(await session.scalars(has))
            if ids:
                rows = [{"raw_log_id": key, "model": model, "data": made[key]} for key in sorted(ids)]
                await session.execute(insert(TurnVectorRow), rows)
        if ids:
            # While no turn is held: whoever has a user forgotten takes episodes first.
            async with self.database.transaction() as session:
                await look_again(session, ids)

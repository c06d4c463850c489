"""Episodes at their end: whether each is about one matter, from which one it goes on (spec 002 §4.3)."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from bus_schema.episodes import Layer
from bus_schema.ids import derived
from bus_schema.lsm_events import EpisodeOpened, EpisodeRecorded
from memory.lsm.borders import border_of
from memory.lsm.chats import locked
from memory.lsm.following import Followers
from memory.lsm.growing import headline_of
from memory.lsm.linking import Linking, links
from memory.lsm.matters import Likeness
from memory.lsm.placing import Bounds
from memory.lsm.tables import EpisodeOfTurnRow, EpisodeRow
from memory.lsm.texts import Text, lacking_vectors, mean_of, text_of
from mindbus.sql.database import Database

# Likeness of what belongs together; across a silence it takes more of it.
_SAME, _SAME_ACROSS_GAP = 0.12, 0.32
# Of fewer words nobody can tell what they are about.
_TELLING = 8
_WAITS_FOR_VECTORS = timedelta(seconds=60)
_AT_ONCE = 50

SettlingEvent = EpisodeOpened | EpisodeRecorded


class Settling:
    """Splits what is about two matters, links what is about one; only what is hot is split, nothing is ever joined.

    It is a `Follower` of the log.
    """

    def __init__(self, database: Database, followers: Followers, bounds: Bounds) -> None:
        self.database, self.followers, self.bounds = database, followers, bounds
        self._linking = Linking()
        self._first_seen: dict[str, datetime] = {}

    def recorded(self, _chat_id: str) -> None:
        """As in Follower; what an episode is about is kept by the number of its turns, so it is found anew."""

    def forgotten(self, _chat_id: str | None) -> None:
        """As in Follower."""
        self._linking.forget()
        self._first_seen.clear()

    async def end(self, chat_id: str, fragment_id: str, raw_log_ids: Collection[str]) -> list[SettlingEvent]:
        """A stretch of the dialogue has ended; a part of the transaction of the message at hand.

        It goes on with its episode if that is about the same matter, else it is an episode of its own.
        """
        session = self.database.session
        await locked(session, chat_id)
        events: list[SettlingEvent] = []
        for row in await self._episodes_of(session, raw_log_ids):
            text = await text_of(session, row.id)
            begin = next(place for place, turn in enumerate(text.turns) if turn.id in raw_log_ids)
            ended = row
            if begin and row.fragment_id != fragment_id and not await asyncio.to_thread(self._goes_on, text, begin):
                ended = await self._split(session, row, text, begin, fragment_id)
                events.append(EpisodeOpened(episode_id=ended.id, chat_id=chat_id, continues_from=ended.continues_from))
            ended.fragment_id = fragment_id
            ended.version += 1
            ids = tuple(turn.id for turn in text.turns[begin:] if turn.id in raw_log_ids)
            about = {"episode_id": ended.id, "chat_id": chat_id, "version": ended.version}
            events.append(EpisodeRecorded.model_validate(about | {"raw_log_ids": ids, "fragment_id": fragment_id}))
        return events

    async def step(self, now: datetime) -> list[SettlingEvent] | None:
        """Settle one episode that is at its end, in the transaction at hand; None if there is none for now."""
        async with self.database.reading() as session:
            ready = await self._ready(session, now)
            if ready is None:
                return None
            text = await text_of(session, ready.id)
            matters = await self._linking.matters_before(session, ready)
        border = await asyncio.to_thread(border_of, text) if ready.layer == Layer.HOT else None
        matter = await asyncio.to_thread(text.matter)
        return await self._settle(ready, text, border, links(matter, matters))

    async def _settle(
        self, seen: EpisodeRow, text: Text, border: int | None, links: tuple[str | None, list[str]]
    ) -> list[SettlingEvent]:
        session = self.database.session
        await locked(session, seen.chat_id)
        query = select(EpisodeRow).where(EpisodeRow.id == seen.id, EpisodeRow.version == seen.version)
        row = await session.scalar(query.with_for_update())
        if row is None:
            # It has changed since; the next step looks at it anew.
            return []
        self._first_seen.pop(row.id, None)
        if border is not None:
            rest = await self._split(session, row, text, border, "matter")
            return [EpisodeOpened(episode_id=rest.id, chat_id=rest.chat_id, continues_from=rest.continues_from)]
        continues_from, related_to = links
        if text.turns and text.has_vectors:
            row.model, row.embedding = await mean_of(session, text)
        if (row.continues_from or continues_from, row.related_to) != (row.continues_from, related_to):
            row.continues_from, row.related_to = row.continues_from or continues_from, related_to
            row.version += 1
        row.is_settled = True
        return []

    async def _split(self, session: AsyncSession, row: EpisodeRow, text: Text, begin: int, why: str) -> EpisodeRow:
        """Its turns from `begin` on are an episode of their own; both are looked at again."""
        kept, moved = text.turns[:begin], text.turns[begin:]
        columns = {name: getattr(row, name) for name in EpisodeRow.__mapper__.column_attrs.keys()}  # noqa: SIM118
        rest = EpisodeRow(**columns | {"id": f"ep_{derived(moved[0].id, why)}", "continues_from": None, "version": 1})
        rest.related_to, rest.is_settled, rest.headline = [], False, headline_of(moved[0].content)
        rest.created_at = moved[0].time
        session.add(rest)
        await session.flush()
        ids = [turn.id for turn in moved]
        moving = update(EpisodeOfTurnRow).where(EpisodeOfTurnRow.raw_log_id.in_(ids)).values(episode_id=rest.id)
        await session.execute(moving.execution_options(synchronize_session=False))
        for each, turns in ((row, kept), (rest, moved)):
            each.turns, each.word_count = len(turns), sum(turn.word_count for turn in turns)
            each.started_at, each.ended_at = turns[0].time, turns[-1].time
            each.model = each.embedding = None
        row.is_settled, row.version = False, row.version + 1
        self.followers.recorded(row.chat_id)
        return rest

    def _goes_on(self, text: Text, begin: int) -> bool:
        silence = text.turns[begin].time - text.turns[begin - 1].time
        needed = _SAME + (_SAME_ACROSS_GAP - _SAME) * min(1.0, silence / self.bounds.gap)
        before, after = text.matter(0, begin), text.matter(begin)
        if min(len(before.terms), len(after.terms)) < _TELLING:
            # A greeting, a word of thanks: no matter of its own.
            return True
        return Likeness(()).of(before, after) >= needed

    async def _episodes_of(self, session: AsyncSession, raw_log_ids: Collection[str]) -> Sequence[EpisodeRow]:
        within = select(EpisodeOfTurnRow.episode_id).where(EpisodeOfTurnRow.raw_log_id.in_(raw_log_ids))
        hot = (EpisodeRow.id.in_(within), EpisodeRow.layer == Layer.HOT.value)
        return (await session.scalars(select(EpisodeRow).where(*hot).order_by(EpisodeRow.id).with_for_update())).all()

    async def _ready(self, session: AsyncSession, now: datetime) -> EpisodeRow | None:
        """One that nothing will be added to, the vectors of which are there, or have let it wait for too long."""
        later = aliased(EpisodeRow)
        is_over = exists().where(later.chat_id == EpisodeRow.chat_id, later.started_at > EpisodeRow.ended_at)
        over = or_(EpisodeRow.fragment_id.is_not(None), EpisodeRow.ended_at < now - self.bounds.gap, is_over)
        query = select(EpisodeRow).where(EpisodeRow.is_settled.is_(False), over)
        rows = (await session.scalars(query.order_by(EpisodeRow.chat_id, EpisodeRow.id).limit(_AT_ONCE))).all()
        lacking = await lacking_vectors(session, [row.id for row in rows])
        for row in rows:
            waits_since = self._first_seen.setdefault(row.id, now)
            if row.id not in lacking or now - waits_since >= _WAITS_FOR_VECTORS:
                return row
        return None


async def look_again(session: AsyncSession, raw_log_ids: Collection[str]) -> None:
    """What could wait no longer for its vectors is settled once more when the last of them is there."""
    within = select(EpisodeOfTurnRow.episode_id).where(EpisodeOfTurnRow.raw_log_id.in_(raw_log_ids))
    episodes = set(await session.scalars(within.distinct()))
    complete = episodes - await lacking_vectors(session, episodes)
    by_words = (EpisodeRow.id.in_(complete), EpisodeRow.is_settled, EpisodeRow.model.is_(None))
    query = select(EpisodeRow).where(*by_words).order_by(EpisodeRow.id).with_for_update()
    for row in await session.scalars(query):
        row.is_settled = False

"""Segmentation: episodes that have ended are split by topic and linked to earlier ones (spec 002 §4.3)."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from cachetools import LRUCache
from sqlalchemy import exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from bus_schema.episodes import Layer, Note
from bus_schema.ids import derived
from bus_schema.lsm_events import EpisodeOpened, EpisodeRecorded
from memory.lsm.archived_texts import ArchivedTexts
from memory.lsm.episode_updates import EpisodeLimits, first_headline
from memory.lsm.log_changes import LogListener, LogListeners
from memory.lsm.rows import add_notes, lacking_vectors, lock_chat
from memory.lsm.tables import EpisodeOfTurnRow, EpisodeRow
from memory.lsm.topics import EpisodeText, Topic, TopicSimilarity, episode_text, mean_vector, nearest, topic_boundary
from mindbus.sql.database import Database

# Least similarity at which a fragment continues its episode; after a silence as long as the gap, the higher one.
_CONTINUES, _CONTINUES_AFTER_GAP = 0.12, 0.32
# Parts with fewer terms have no topic of their own.
_MIN_TERMS = 8
# Least similarity of the episode that one continues, and of those it is related to.
_CONTINUES_FROM, _RELATED = 0.3, 0.2
# Earlier episodes whose topics are compared: so many of the latest, and of the nearest of so many in meaning.
_EARLIER_EPISODES, _COMPARED, _MAX_RELATED = 20, 2_000, 3
_CACHED_TOPICS = 500
_WAIT_FOR_VECTORS = _WAIT_FOR_TEXTS = timedelta(seconds=60)
_BATCH = 50

SegmentationEvent = EpisodeOpened | EpisodeRecorded
# Id of the episode that one continues, ids of related ones.
Links = tuple[str | None, list[str]]


class Segmentation(LogListener):
    """Splits hot episodes of two topics and links all; never joins any."""

    def __init__(
        self, database: Database, listeners: LogListeners, limits: EpisodeLimits, texts: ArchivedTexts
    ) -> None:
        self.database, self.listeners, self.limits, self.texts = database, listeners, limits, texts
        # By id, number of turns and model.
        self._topics: LRUCache[tuple[str, int, str | None], Topic] = LRUCache(_CACHED_TOPICS)
        self._first_seen: dict[str, datetime] = {}
        self._postponed: dict[str, datetime] = {}

    def on_erased(self, chat_id: str | None) -> None:
        self._topics.clear()
        self._first_seen.clear()
        self._postponed.clear()

    async def end(self, chat_id: str, fragment_id: str, raw_log_ids: Collection[str]) -> list[SegmentationEvent]:
        """End a fragment of the dialogue in the current transaction.

        It stays in its episode if that has the same topic, else it becomes an episode of its own.
        """
        session = self.database.session
        await session.run_sync(lock_chat, chat_id)
        events: list[SegmentationEvent] = []
        for row in await self._episodes_of(session, raw_log_ids):
            text = await episode_text(session, row.id)
            begin = next(index for index, turn in enumerate(text.turns) if turn.id in raw_log_ids)
            ended = row
            if begin and row.fragment_id != fragment_id and not await asyncio.to_thread(self._continues, text, begin):
                ended = await self._split(session, row, text, begin, fragment_id)
                events.append(EpisodeOpened(episode_id=ended.id, chat_id=chat_id, continues_from=ended.continues_from))
            ended.fragment_id = fragment_id
            ended.version += 1
            ids = tuple(turn.id for turn in text.turns[begin:] if turn.id in raw_log_ids)
            about = {"episode_id": ended.id, "chat_id": chat_id, "version": ended.version}
            events.append(EpisodeRecorded.model_validate(about | {"raw_log_ids": ids, "fragment_id": fragment_id}))
        return events

    async def step(self, now: datetime) -> list[SegmentationEvent] | None:
        """Settle one episode that has ended, in the current transaction; None if there is none."""
        async with self.database.reading() as session:
            ready = await self._ready(session, now)
            if ready is None:
                return None
            text = await episode_text(session, ready.id)
        if not await self.texts.fill_if_there(text.turns):
            # Without its texts it would be settled as one of no topic.
            self._postponed[ready.id] = now + _WAIT_FOR_TEXTS
            return []
        is_hot = ready.layer == Layer.HOT
        # A packed episode may be older than notes are; that is all it lacks if it was settled by its vectors.
        notes = () if is_hot else await asyncio.to_thread(text.notes)
        if not is_hot and ready.model is not None:
            return await self._note(ready, text, notes)
        topic = await asyncio.to_thread(text.topic)
        earlier = await self._earlier_topics(ready, topic)
        boundary = await asyncio.to_thread(topic_boundary, text) if is_hot else None
        return await self._settle(ready, text, boundary, _links(topic, earlier), notes)

    async def _settle(
        self, seen: EpisodeRow, text: EpisodeText, boundary: int | None, links: Links, notes: Sequence[Note]
    ) -> list[SegmentationEvent]:
        session, row = self.database.session, await self._lock(seen)
        if row is None:
            return []
        if boundary is not None:
            # The seed of derived ids: changing it would change the ids of episodes.
            second = await self._split(session, row, text, boundary, "matter")
            return [EpisodeOpened(episode_id=second.id, chat_id=second.chat_id, continues_from=second.continues_from)]
        continues_from, related_to = links
        if text.turns and text.has_vectors:
            row.model, row.embedding = await mean_vector(session, text)
        if (row.continues_from or continues_from, row.related_to) != (row.continues_from, related_to):
            row.continues_from, row.related_to = row.continues_from or continues_from, related_to
            row.version += 1
        if row.layer == Layer.HOT:
            row.tags = await asyncio.to_thread(text.tags)
        await self._finish(row, text, notes)
        return []

    async def _note(self, seen: EpisodeRow, text: EpisodeText, notes: Sequence[Note]) -> list[SegmentationEvent]:
        """Add notes to an episode that is settled apart from them."""
        if (row := await self._lock(seen)) is not None:
            await self._finish(row, text, notes)
        return []

    async def _finish(self, row: EpisodeRow, text: EpisodeText, notes: Sequence[Note]) -> None:
        if await add_notes(self.database.session, text.turns, notes):
            self.listeners.notify_recorded(row.chat_id)
        row.is_settled = True

    async def _lock(self, seen: EpisodeRow) -> EpisodeRow | None:
        """The row of an episode; None if it has changed since it was read, so that a later step settles it."""
        session = self.database.session
        await session.run_sync(lock_chat, seen.chat_id)
        query = select(EpisodeRow).where(EpisodeRow.id == seen.id, EpisodeRow.version == seen.version)
        row = await session.scalar(query.with_for_update())
        if row is not None:
            self._first_seen.pop(row.id, None)
            self._postponed.pop(row.id, None)
        return row

    async def _split(
        self, session: AsyncSession, row: EpisodeRow, text: EpisodeText, begin: int, seed: str
    ) -> EpisodeRow:
        """Move the turns from `begin` on to a new episode; both are to be settled again."""
        first_turns, moved = text.turns[:begin], text.turns[begin:]
        columns = {name: getattr(row, name) for name in EpisodeRow.__mapper__.column_attrs.keys()}  # noqa: SIM118
        second = EpisodeRow(
            **columns | {"id": f"ep_{derived(moved[0].id, seed)}", "continues_from": None, "version": 1}
        )
        second.related_to, second.is_settled, second.headline = [], False, first_headline(moved[0].content)
        second.created_at = moved[0].time
        session.add(second)
        await session.flush()
        ids = [turn.id for turn in moved]
        moving = update(EpisodeOfTurnRow).where(EpisodeOfTurnRow.raw_log_id.in_(ids)).values(episode_id=second.id)
        await session.execute(moving.execution_options(synchronize_session=False))
        for part, turns in ((row, first_turns), (second, moved)):
            part.turns, part.word_count = len(turns), sum(turn.word_count for turn in turns)
            part.started_at, part.ended_at = turns[0].time, turns[-1].time
            part.model = part.embedding = None
        row.is_settled, row.version = False, row.version + 1
        self.listeners.notify_recorded(row.chat_id)
        return second

    def _continues(self, text: EpisodeText, begin: int) -> bool:
        silence = text.turns[begin].time - text.turns[begin - 1].time
        needed = _CONTINUES + (_CONTINUES_AFTER_GAP - _CONTINUES) * min(1.0, silence / self.limits.gap)
        before, after = text.topic(0, begin), text.topic(begin)
        if min(len(before.terms), len(after.terms)) < _MIN_TERMS:
            # Such as a greeting or thanks.
            return True
        return TopicSimilarity(()).of(before, after) >= needed

    async def _episodes_of(self, session: AsyncSession, raw_log_ids: Collection[str]) -> Sequence[EpisodeRow]:
        within = select(EpisodeOfTurnRow.episode_id).where(EpisodeOfTurnRow.raw_log_id.in_(raw_log_ids))
        hot = (EpisodeRow.id.in_(within), EpisodeRow.layer == Layer.HOT.value)
        return (await session.scalars(select(EpisodeRow).where(*hot).order_by(EpisodeRow.id).with_for_update())).all()

    async def _ready(self, session: AsyncSession, now: datetime) -> EpisodeRow | None:
        """An unsettled episode that nothing will be added to and whose vectors are complete, or overdue."""
        later = aliased(EpisodeRow)
        is_over = exists().where(later.chat_id == EpisodeRow.chat_id, later.started_at > EpisodeRow.ended_at)
        over = or_(EpisodeRow.fragment_id.is_not(None), EpisodeRow.ended_at < now - self.limits.gap, is_over)
        query = select(EpisodeRow).where(EpisodeRow.is_settled.is_(False), over)
        rows = (
            await session.scalars(
                query.order_by(EpisodeRow.layer != Layer.HOT, EpisodeRow.chat_id, EpisodeRow.id).limit(_BATCH)
            )
        ).all()
        missing = await lacking_vectors(session, [row.id for row in rows])
        for row in rows:
            if self._postponed.get(row.id, now) > now:
                continue
            waits_since = self._first_seen.setdefault(row.id, now)
            if row.id not in missing or now - waits_since >= _WAIT_FOR_VECTORS:
                return row
        return None

    async def _earlier_topics(self, row: EpisodeRow, topic: Topic) -> dict[str, Topic]:
        """Topics, by episode id, of the latest episodes that began before this one, and of the nearest in meaning."""
        async with self.database.reading() as session:
            episodes = await self._earlier(session, row, topic)
            known = {each.id: self._topics.get(_topic_key(each)) for each in episodes.values()}
            topics = {episode_id: found for episode_id, found in known.items() if found is not None}
            texts = {each: await episode_text(session, each) for each in episodes.keys() - topics.keys()}
        # Without storage archived ones are compared by their vectors alone.
        is_whole = await self.texts.fill_if_there([turn for text in texts.values() for turn in text.turns])
        for episode_id, text in texts.items():
            topics[episode_id] = await asyncio.to_thread(text.topic)
            if is_whole:
                self._topics[_topic_key(episodes[episode_id])] = topics[episode_id]
        return topics

    async def _earlier(self, session: AsyncSession, row: EpisodeRow, topic: Topic) -> dict[str, EpisodeRow]:
        of_chat = (EpisodeRow.chat_id == row.chat_id, EpisodeRow.started_at < row.started_at)
        latest = select(EpisodeRow).where(*of_chat).order_by(EpisodeRow.ended_at.desc()).limit(_EARLIER_EPISODES)
        episodes = {episode.id: episode for episode in await session.scalars(latest)}
        if topic.direction is not None:
            vectors = select(EpisodeRow.id, EpisodeRow.embedding).where(*of_chat, EpisodeRow.embedding.is_not(None))
            known = (await session.execute(vectors.order_by(EpisodeRow.ended_at.desc()).limit(_COMPARED))).all()
            near = await asyncio.to_thread(nearest, topic.direction, known, _EARLIER_EPISODES)
            found = select(EpisodeRow).where(EpisodeRow.id.in_(set(near) - episodes.keys()))
            episodes |= {episode.id: episode for episode in await session.scalars(found)}
        return episodes


def _topic_key(row: EpisodeRow) -> tuple[str, int, str | None]:
    return row.id, row.turns, row.model


def _links(topic: Topic, earlier: Mapping[str, Topic]) -> Links:
    similarity = TopicSimilarity([topic, *earlier.values()])
    ranked = sorted(((similarity.of(topic, other), other_id) for other_id, other in earlier.items()), reverse=True)
    similar = [(score, other_id) for score, other_id in ranked if score >= _RELATED][: _MAX_RELATED + 1]
    if similar and similar[0][0] >= _CONTINUES_FROM:
        return similar[0][1], [other_id for _, other_id in similar[1:]]
    return None, [other_id for _, other_id in similar[:_MAX_RELATED]]

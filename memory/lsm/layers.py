"""Episodes on their way down the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import EpisodeId, Layer
from bus_schema.lsm_packing import DueEpisode, DueEpisodes
from memory.lsm.placing import Bounds
from memory.lsm.rules import Rules
from memory.lsm.tables import EpisodeRow
from mindbus.sql.database import Database

_LOOKED_AT = (
    EpisodeRow.id,
    EpisodeRow.chat_id,
    EpisodeRow.version,
    EpisodeRow.layer,
    EpisodeRow.last_accessed,
    EpisodeRow.access_count,
    EpisodeRow.is_anchor,
    EpisodeRow.ended_at,
    EpisodeRow.word_count,
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    last_accessed: datetime
    item: DueEpisode

    @property
    def key(self) -> tuple[datetime, str]:
        return self.last_accessed, self.item.episode_id


class Layers:
    """Tells what is to go down, by the rules alone; to move it is for whoever packs."""

    def __init__(self, database: Database, rules: Rules, bounds: Bounds) -> None:
        self.database, self.rules, self.bounds = database, rules, bounds

    async def due(self, at: datetime, after: EpisodeId | None, limit: int) -> DueEpisodes:
        """The longest waiting first; with `after` those behind it."""
        async with self.database.reading() as session:
            waiting = {each.item.episode_id: each for each in await self._crowded(session, at)}
            waiting |= {each.item.episode_id: each for each in await self._aged(session, at)}
            begin = await session.scalar(select(EpisodeRow.last_accessed).where(EpisodeRow.id == after))
        ordered = sorted(waiting.values(), key=lambda each: each.key)
        if after is not None and begin is not None:
            ordered = [each for each in ordered if each.key > (begin, after)]
        return DueEpisodes(items=tuple(each.item for each in ordered[:limit]))

    async def _aged(self, session: AsyncSession, at: datetime) -> Sequence[_Waiting]:
        hot = and_(EpisodeRow.layer == Layer.HOT.value, EpisodeRow.last_accessed <= at - self.rules.warm_after)
        warm = and_(
            EpisodeRow.layer == Layer.WARM.value,
            EpisodeRow.last_accessed <= at - self.rules.cold_after,
            EpisodeRow.is_anchor.is_(False),
        )
        rows = await session.execute(select(*_LOOKED_AT).where(or_(hot, warm)))
        return [each for row in rows if (each := self._waiting(row, at)) is not None]

    async def _crowded(self, session: AsyncSession, at: datetime) -> Sequence[_Waiting]:
        """Of every chat that has too much in its hot layer, the oldest; what is still being said stays."""
        too_much = (
            select(EpisodeRow.chat_id)
            .where(EpisodeRow.layer == Layer.HOT.value)
            .group_by(EpisodeRow.chat_id)
            .having(func.sum(EpisodeRow.word_count) > self.rules.hot_words)
        )
        hot = (EpisodeRow.layer == Layer.HOT.value, EpisodeRow.chat_id.in_(too_much))
        query = select(*_LOOKED_AT).where(*hot).order_by(EpisodeRow.last_accessed, EpisodeRow.id)
        chats: dict[str, list[Any]] = {}
        for row in await session.execute(query):
            chats.setdefault(row.chat_id, []).append(row)
        return [each for rows in chats.values() for each in self._too_much(rows, at)]

    def _too_much(self, rows: Sequence[Any], at: datetime) -> list[_Waiting]:
        surplus = sum(row.word_count for row in rows) - self.rules.hot_words
        found: list[_Waiting] = []
        for row in rows:
            if surplus <= 0:
                break
            is_open = at - row.ended_at <= self.bounds.gap
            waiting = None if is_open else self._waiting(row, at, is_crowded=True)
            if waiting is not None:
                found.append(waiting)
                surplus -= row.word_count
        return found

    def _waiting(self, row: Any, at: datetime, *, is_crowded: bool = False) -> _Waiting | None:
        due = self.rules.due(row, at, is_crowded=is_crowded)
        if due is None:
            return None
        to, trigger = due
        item = DueEpisode(episode_id=row.id, version=row.version, layer=Layer(row.layer), to=to, trigger=trigger)
        return _Waiting(row.last_accessed, item)

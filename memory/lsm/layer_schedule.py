"""Layer schedule: episodes that are due to go down a layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import EpisodeId, Layer
from bus_schema.lsm_packing import DueEpisode, DueEpisodes
from memory.lsm.episode_updates import EpisodeLimits
from memory.lsm.priority import LayerRules
from memory.lsm.tables import EpisodeRow
from mindbus.sql.database import Database

_COLUMNS = (
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
class _Due:
    last_accessed: datetime
    item: DueEpisode

    @property
    def key(self) -> tuple[datetime, str]:
        return self.last_accessed, self.item.episode_id


class LayerSchedule:
    """Applies the rules to all episodes; the packer moves them."""

    def __init__(self, database: Database, rules: LayerRules, limits: EpisodeLimits) -> None:
        self.database, self.rules, self.limits = database, rules, limits

    async def due(self, at: datetime, after: EpisodeId | None, limit: int) -> DueEpisodes:
        """Due episodes by ascending last access; those behind `after`, if given."""
        async with self.database.reading() as session:
            due = {each.item.episode_id: each for each in await self._due_by_size(session, at)}
            due |= {each.item.episode_id: each for each in await self._due_by_age(session, at)}
            begin = await session.scalar(select(EpisodeRow.last_accessed).where(EpisodeRow.id == after))
        ordered = sorted(due.values(), key=lambda each: each.key)
        if after is not None and begin is not None:
            ordered = [each for each in ordered if each.key > (begin, after)]
        return DueEpisodes(items=tuple(each.item for each in ordered[:limit]))

    async def _due_by_age(self, session: AsyncSession, at: datetime) -> Sequence[_Due]:
        hot = and_(EpisodeRow.layer == Layer.HOT.value, EpisodeRow.last_accessed <= at - self.rules.warm_after)
        warm = and_(
            EpisodeRow.layer == Layer.WARM.value,
            EpisodeRow.last_accessed <= at - self.rules.cold_after,
            EpisodeRow.is_anchor.is_(False),
        )
        rows = await session.execute(select(*_COLUMNS).where(or_(hot, warm)))
        return [each for row in rows if (each := self._due(row, at)) is not None]

    async def _due_by_size(self, session: AsyncSession, at: datetime) -> Sequence[_Due]:
        """The oldest hot episodes of every chat that has too many hot words; open episodes stay."""
        too_large = (
            select(EpisodeRow.chat_id)
            .where(EpisodeRow.layer == Layer.HOT.value)
            .group_by(EpisodeRow.chat_id)
            .having(func.sum(EpisodeRow.word_count) > self.rules.hot_words)
        )
        hot = (EpisodeRow.layer == Layer.HOT.value, EpisodeRow.chat_id.in_(too_large))
        query = select(*_COLUMNS).where(*hot).order_by(EpisodeRow.last_accessed, EpisodeRow.id)
        chats: dict[str, list[Any]] = {}
        for row in await session.execute(query):
            chats.setdefault(row.chat_id, []).append(row)
        return [each for rows in chats.values() for each in self._surplus(rows, at)]

    def _surplus(self, rows: Sequence[Any], at: datetime) -> list[_Due]:
        surplus = sum(row.word_count for row in rows) - self.rules.hot_words
        due: list[_Due] = []
        for row in rows:
            if surplus <= 0:
                break
            is_open = at - row.ended_at <= self.limits.gap
            each = None if is_open else self._due(row, at, is_crowded=True)
            if each is not None:
                due.append(each)
                surplus -= row.word_count
        return due

    def _due(self, row: Any, at: datetime, *, is_crowded: bool = False) -> _Due | None:
        due = self.rules.due(row, at, is_crowded=is_crowded)
        if due is None:
            return None
        to, trigger = due
        item = DueEpisode(episode_id=row.id, version=row.version, layer=Layer(row.layer), to=to, trigger=trigger)
        return _Due(row.last_accessed, item)

"""Schedule of packing: which episodes are due to go down a layer."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import EpisodeId, Layer
from bus_schema.packer import DueEpisode, DueEpisodes
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


# Due episodes are in the order of their last access.
_Due = tuple[datetime, DueEpisode]


def _key(due: _Due) -> tuple[datetime, str]:
    return due[0], due[1].episode_id


class LayerSchedule:
    """Applies the rules to all episodes; the packer moves them."""

    def __init__(self, database: Database, rules: LayerRules, limits: EpisodeLimits) -> None:
        self.database, self.rules, self.limits = database, rules, limits

    async def due(self, at: datetime, after: EpisodeId | None, limit: int) -> DueEpisodes:
        """Due episodes by ascending last access; those behind `after`, if given."""
        async with self.database.reading() as session:
            all_due = [*await self._due_by_size(session, at), *await self._due_by_age(session, at)]
            begin = await session.scalar(select(EpisodeRow.last_accessed).where(EpisodeRow.id == after))
        # One that is due by size and by age is due by age.
        ordered = sorted({item.episode_id: (time, item) for time, item in all_due}.values(), key=_key)
        if after is not None and begin is not None:
            ordered = [transition for transition in ordered if _key(transition) > (begin, after)]
        return DueEpisodes(items=tuple(item for _, item in ordered[:limit]))

    async def _due_by_age(self, session: AsyncSession, at: datetime) -> Sequence[_Due]:
        hot = and_(EpisodeRow.layer == Layer.HOT.value, EpisodeRow.last_accessed <= at - self.rules.warm_after)
        warm = and_(
            EpisodeRow.layer == Layer.WARM.value,
            EpisodeRow.last_accessed <= at - self.rules.cold_after,
            EpisodeRow.is_anchor.is_(False),
        )
        rows = await session.execute(select(*_COLUMNS).where(or_(hot, warm)))
        return [transition for row in rows if (transition := self._due(row, at)) is not None]

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
        return [transition for rows in chats.values() for transition in self._surplus(rows, at)]

    def _surplus(self, rows: Sequence[Any], at: datetime) -> list[_Due]:
        surplus = sum(row.word_count for row in rows) - self.rules.hot_words
        due: list[_Due] = []
        for row in rows:
            if surplus <= 0:
                break
            is_open = at - row.ended_at <= self.limits.gap
            transition = None if is_open else self._due(row, at, is_crowded=True)
            if transition is not None:
                due.append(transition)
                surplus -= row.word_count
        return due

    def _due(self, row: Any, at: datetime, *, is_crowded: bool = False) -> _Due | None:
        due = self.rules.due(row, at, is_crowded=is_crowded)
        if due is None:
            return None
        to, trigger = due
        item = DueEpisode(episode_id=row.id, version=row.version, layer=Layer(row.layer), to=to, trigger=trigger)
        return row.last_accessed, item

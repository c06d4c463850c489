"""The measures that memory learns from (spec 002 L9)."""

from collections import Counter
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import EpisodeStats, LayerStats
from memory.lsm.tables import (
    ChatRow,
    EpisodeRow,
    LayerChangeRow,
    SearchRow,
    TurnRow,
    TurnVectorRow,
    wants_vector,
)
from mindbus.sql.database import Database

_AT_ONCE = 500


class Statistics:
    """Counts, for one chat or for all."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def count(self, chat_id: str | None) -> EpisodeStats:
        """Raises DatabaseAway."""
        async with self.database.reading() as session:
            searched = await self._searched(session, chat_id)
            layers = await self._layers(session, chat_id, searched)
            counted = await self._counted(session, chat_id)
            return EpisodeStats(
                layers=layers,
                episodes=sum(layer.episodes for layer in layers.values()),
                searches=searched["searches"],
                unpacked=searched["unpacked"],
                with_feedback=searched["with feedback"],
                hit_rate=searched["of use"] / searched["with feedback"] if searched["with feedback"] else None,
                **counted,
                verified_packs=sum(layer.packs for layer in layers.values()),
                **await self._packed(session, chat_id),
            )

    async def _counted(self, session: AsyncSession, chat_id: str | None) -> dict[str, int]:
        waiting = (
            select(func.count())
            .select_from(TurnRow)
            .outerjoin(TurnVectorRow, TurnVectorRow.raw_log_id == TurnRow.id)
            .where(TurnVectorRow.raw_log_id.is_(None), wants_vector(), *_of(TurnRow, chat_id))
        )
        queries = {
            "chats": select(func.count()).select_from(ChatRow).where(*_of(ChatRow, chat_id)),
            "turns": select(func.count()).select_from(TurnRow).where(*_of(TurnRow, chat_id)),
            "anchors": select(func.count())
            .select_from(EpisodeRow)
            .where(EpisodeRow.is_anchor, *_of(EpisodeRow, chat_id)),
            "waiting_for_vectors": waiting,
        }
        return {name: await session.scalar(query) or 0 for name, query in queries.items()}

    async def _layers(
        self, session: AsyncSession, chat_id: str | None, searched: Counter[str]
    ) -> dict[Layer, LayerStats]:
        kept = func.coalesce(EpisodeRow.layer_word_count, EpisodeRow.word_count)
        query = (
            select(EpisodeRow.layer, func.count(), func.sum(kept), func.sum(EpisodeRow.word_count))
            .where(*_of(EpisodeRow, chat_id))
            .group_by(EpisodeRow.layer)
        )
        rows = {layer: numbers for layer, *numbers in await session.execute(query)}
        packs = await self._packs(session, chat_id)
        return {
            layer: LayerStats(
                episodes=rows.get(layer, [0, 0, 0])[0],
                words=rows.get(layer, [0, 0, 0])[1],
                raw_words=rows.get(layer, [0, 0, 0])[2],
                packs=packs.get(layer, 0),
                hits=searched[f"hits {layer}"],
                used=searched[f"used {layer}"],
            )
            for layer in Layer
        }

    async def _packs(self, session: AsyncSession, chat_id: str | None) -> dict[str, int]:
        """How often an episode came down into each layer: with a pack that held, there is no other way."""
        query = (
            select(LayerChangeRow.layer, func.count().label("packs"))
            .join(EpisodeRow, EpisodeRow.id == LayerChangeRow.episode_id)
            .where(LayerChangeRow.layer != Layer.HOT.value, *_of(EpisodeRow, chat_id))
            .group_by(LayerChangeRow.layer)
        )
        return {row.layer: row.packs for row in await session.execute(query)}

    async def _searched(self, session: AsyncSession, chat_id: str | None) -> Counter[str]:
        """`hits` name the layer of each turn that a search has returned, `feedback` the turns that were of use."""
        counted: Counter[str] = Counter()
        query = select(SearchRow.unpacked, SearchRow.hits, SearchRow.feedback).where(*_of(SearchRow, chat_id))
        async for row in await session.stream(query.execution_options(yield_per=_AT_ONCE)):
            used = None if row.feedback is None else set(row.feedback.get("used", ()))
            counted["searches"] += 1
            counted["unpacked"] += row.unpacked
            counted["with feedback"] += used is not None
            counted["of use"] += bool(used)
            counted.update(f"hits {hit['layer']}" for hit in row.hits)
            counted.update(f"used {hit['layer']}" for hit in row.hits if hit["raw_log_id"] in (used or ()))
        return counted

    async def _packed(self, session: AsyncSession, chat_id: str | None) -> dict[str, int]:
        """Of the last pack of every episode."""
        counted = Counter(put_back=0, struck_out=0)
        query = select(EpisodeRow.report).where(EpisodeRow.report.is_not(None), *_of(EpisodeRow, chat_id))
        async for (report,) in await session.stream(query.execution_options(yield_per=_AT_ONCE)):
            counted["put_back"] += len(report["put_back"])
            counted["struck_out"] += len(report["struck_out"])
        return dict(counted)


def _of(table: Any, chat_id: str | None) -> list[Any]:
    return [] if chat_id is None else [table.chat_id == chat_id]

"""Statistics of long-term memory (spec 002 L9), and the history of its layers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, LargeBinary, Text, cast, func, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import EpisodeStats, GetLayerHistory, LayerHistory, LayerMoment, LayerStats, MemorySizes
from memory.lsm.tables import (
    ArchiveRow,
    ChatRow,
    EpisodeRow,
    LayerChangeRow,
    SearchFeedback,
    SearchRow,
    TurnRow,
    TurnVectorRow,
    of_chat,
    wants_vector,
)
from mindbus.sql.database import Database

_BATCH = 500


class EpisodeStatistics:
    """Counts and sizes for one chat or for all, in read-only sessions."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def count(self, chat_id: str | None) -> EpisodeStats:
        """All statistics. Raises DatabaseAway."""
        async with self.database.reading() as session:
            searches = await self._searches(session, chat_id)
            layers = await self._layers(session, chat_id, searches)
            rated = searches["with feedback"]
            return EpisodeStats(
                layers=layers,
                episodes=sum(layer.episodes for layer in layers.values()),
                searches=searches["searches"],
                unpacked=searches["unpacked"],
                with_feedback=rated,
                hit_rate=searches["of use"] / rated if rated else None,
                **await self._counts(session, chat_id),
                verified_packs=sum(layer.packs for layer in layers.values()),
                **await self._repairs(session, chat_id),
            )

    async def sizes(self, chat_id: str | None, indexes: int, snapshots: int) -> MemorySizes:
        """Bytes in the database, beside those of the indexes; every text is looked at. Raises DatabaseAway."""
        packs = (EpisodeRow.content_warm, EpisodeRow.content_cold, EpisodeRow.embedding)
        of_vector = select(self._sum(TurnVectorRow.data)).select_from(TurnVectorRow)
        if chat_id is not None:
            of_vector = of_vector.join(TurnRow, TurnRow.id == TurnVectorRow.raw_log_id)
        of_episode = ArchiveRow.episode_id.in_(select(EpisodeRow.id).where(*of_chat(EpisodeRow, chat_id)))
        queries = {
            "texts": select(self._sum(TurnRow.content)).where(*of_chat(TurnRow, chat_id)),
            "packs": select(sum(map(self._sum, packs), literal(0))).where(*of_chat(EpisodeRow, chat_id)),
            "archives": select(func.sum(ArchiveRow.size_bytes)).where(
                ArchiveRow.state.in_(("archived", "restored")), of_episode
            ),
            "archived_texts": select(func.sum(ArchiveRow.text_bytes)).where(ArchiveRow.state == "archived", of_episode),
            "vectors": of_vector.where(*of_chat(TurnRow, chat_id)),
        }
        async with self.database.reading() as session:
            stored = {name: int(await session.scalar(query) or 0) for name, query in queries.items()}
        return MemorySizes(**stored, indexes=indexes, snapshots=snapshots)

    def _sum(self, column: Any) -> ColumnElement[int]:
        """Bytes of a column; SQLite counts the characters of a text, unless it is cast."""
        is_binary, is_sqlite = isinstance(column.type, LargeBinary), self.database.is_sqlite
        length = func.length if is_sqlite else func.octet_length
        stored = column if is_binary else cast(column, LargeBinary if is_sqlite else Text)
        return func.coalesce(func.sum(length(stored)), 0)

    async def layer_history(self, query: GetLayerHistory, now: datetime) -> LayerHistory:
        """Words in each layer at equal intervals from the first word on; an episode counts from its beginning.

        The end is `until`; without it now, or the last change, which an as-of time may put into the future.
        """
        statement = (
            select(EpisodeRow.id, EpisodeRow.started_at, EpisodeRow.word_count)
            .add_columns(LayerChangeRow.at, LayerChangeRow.layer, LayerChangeRow.word_count.label("words"))
            .outerjoin(LayerChangeRow, LayerChangeRow.episode_id == EpisodeRow.id)
            .where(*of_chat(EpisodeRow, query.chat_id))
            .order_by(EpisodeRow.id, LayerChangeRow.position)
        )
        async with self.database.reading() as session:
            rows = [row async for row in await session.stream(statement.execution_options(yield_per=2 * _BATCH))]
        until = query.until or max([now, *(row.at for row in rows if row.at is not None)])
        deltas = sorted((delta for delta in _deltas(rows) if delta.at <= until), key=lambda delta: delta.at)
        return LayerHistory(points=tuple(_points(deltas, until, query.steps)))

    async def _counts(self, session: AsyncSession, chat_id: str | None) -> dict[str, int]:
        count = select(func.count())
        queries = {
            "chats": count.select_from(ChatRow).where(*of_chat(ChatRow, chat_id)),
            "turns": count.select_from(TurnRow).where(*of_chat(TurnRow, chat_id)),
            "anchors": count.select_from(EpisodeRow).where(EpisodeRow.is_anchor, *of_chat(EpisodeRow, chat_id)),
            "waiting_for_vectors": count.select_from(TurnRow)
            .outerjoin(TurnVectorRow, TurnVectorRow.raw_log_id == TurnRow.id)
            .where(TurnVectorRow.raw_log_id.is_(None), wants_vector(), *of_chat(TurnRow, chat_id)),
        }
        return {name: await session.scalar(query) or 0 for name, query in queries.items()}

    async def _layers(
        self, session: AsyncSession, chat_id: str | None, searches: Counter[str]
    ) -> dict[Layer, LayerStats]:
        packed_words = func.coalesce(EpisodeRow.layer_word_count, EpisodeRow.word_count)
        query = (
            select(EpisodeRow.layer, func.count(), func.sum(packed_words), func.sum(EpisodeRow.word_count))
            .where(*of_chat(EpisodeRow, chat_id))
            .group_by(EpisodeRow.layer)
        )
        rows = {layer: numbers for layer, *numbers in await session.execute(query)}
        packs = await self._packs(session, chat_id)
        layers = {}
        for layer in Layer:
            episodes, words, raw_words = rows.get(layer, [0, 0, 0])
            layers[layer] = LayerStats(
                episodes=episodes,
                words=words,
                raw_words=raw_words,
                packs=packs.get(layer, 0),
                hits=searches[f"hits {layer}"],
                used=searches[f"used {layer}"],
            )
        return layers

    async def _packs(self, session: AsyncSession, chat_id: str | None) -> dict[str, int]:
        """Number of transitions down into each layer: each is a verified pack."""
        query = (
            select(LayerChangeRow.layer, func.count().label("packs"))
            .join(EpisodeRow, EpisodeRow.id == LayerChangeRow.episode_id)
            .where(LayerChangeRow.layer != Layer.HOT.value, *of_chat(EpisodeRow, chat_id))
            .group_by(LayerChangeRow.layer)
        )
        return {row.layer: row.packs for row in await session.execute(query)}

    async def _searches(self, session: AsyncSession, chat_id: str | None) -> Counter[str]:
        """Counts of searches, of returned turns by layer, and of those that feedback names as useful."""
        counts: Counter[str] = Counter()
        query = select(SearchRow.unpacked, SearchRow.hits, SearchRow.feedback).where(*of_chat(SearchRow, chat_id))
        async for row in await session.stream(query.execution_options(yield_per=_BATCH)):
            used = None if row.feedback is None else SearchFeedback.of(row.feedback).used
            counts["searches"] += 1
            counts["unpacked"] += row.unpacked
            counts["with feedback"] += used is not None
            counts["of use"] += bool(used)
            counts.update(f"hits {hit['layer']}" for hit in row.hits)
            counts.update(f"used {hit['layer']}" for hit in row.hits if hit["raw_log_id"] in (used or ()))
        return counts

    async def _repairs(self, session: AsyncSession, chat_id: str | None) -> dict[str, int]:
        counts = Counter(put_back=0, struck_out=0)
        query = select(EpisodeRow.report).where(EpisodeRow.report.is_not(None), *of_chat(EpisodeRow, chat_id))
        async for (report,) in await session.stream(query.execution_options(yield_per=_BATCH)):
            counts["put_back"] += len(report["put_back"])
            counts["struck_out"] += len(report["struck_out"])
        return dict(counts)


class _Delta(NamedTuple):
    """Change of a layer's words at a time; `raw_words` were newly recorded then."""

    at: datetime
    layer: Layer
    words: int
    raw_words: int = 0


def _deltas(rows: Iterable[Any]) -> Iterator[_Delta]:
    episode_id = before = None
    for row in rows:
        if row.id != episode_id:
            episode_id, before = row.id, (Layer.HOT, row.word_count)
            yield _Delta(row.started_at, Layer.HOT, row.word_count, row.word_count)
        if row.at is not None and before is not None:
            # Subtract what was added, whatever the episode has grown to since.
            yield _Delta(row.at, before[0], -before[1])
            before = Layer(row.layer), row.words
            yield _Delta(row.at, *before)


def _points(deltas: list[_Delta], until: datetime, count: int) -> Iterator[LayerMoment]:
    if not deltas:
        return
    first, words, raw_words, done = deltas[0].at, Counter[Layer](), 0, 0
    for number in range(count):
        at = first + (until - first) * (number / (count - 1))
        while done < len(deltas) and (deltas[done].at <= at or number == count - 1):
            words[deltas[done].layer] += deltas[done].words
            raw_words += deltas[done].raw_words
            done += 1
        yield LayerMoment(at=at, words={layer: words[layer] for layer in Layer}, raw_words=raw_words)

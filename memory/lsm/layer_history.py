"""How many words each layer has had over time."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import object_session

from bus_schema.episodes import Layer
from bus_schema.lsm_statistics import GetLayerHistory, LayerHistory, LayerMoment
from memory.lsm.tables import EpisodeRow, LayerChangeRow
from mindbus.sql.database import Database

_AT_ONCE = 1000


class _Step(NamedTuple):
    """At a time a layer has so many words more, or fewer; `said` are new ones."""

    at: datetime
    layer: Layer
    words: int
    said: int = 0


def note_change(row: EpisodeRow, at: datetime) -> None:
    """It is in another layer since, which is kept with the rest of its transaction."""
    session = object_session(row)
    assert session is not None, "an episode changes its layer in a transaction"
    words = row.word_count if row.layer_word_count is None else row.layer_word_count
    session.add(LayerChangeRow(episode_id=row.id, at=at, layer=row.layer, word_count=words))


class LayerHistories:
    """Reads without locks, beside whoever writes."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def read(self, query: GetLayerHistory, now: datetime) -> LayerHistory:
        """In equal steps from the first word on; an episode counts from its beginning.

        What was packed as of a time to come is packed already: without `until` that is the end.
        """
        wanted = (
            select(EpisodeRow.id, EpisodeRow.started_at, EpisodeRow.word_count)
            .add_columns(LayerChangeRow.at, LayerChangeRow.layer, LayerChangeRow.word_count.label("words"))
            .outerjoin(LayerChangeRow, LayerChangeRow.episode_id == EpisodeRow.id)
            .order_by(EpisodeRow.id, LayerChangeRow.position)
        )
        if query.chat_id is not None:
            wanted = wanted.where(EpisodeRow.chat_id == query.chat_id)
        async with self.database.reading() as session:
            rows = [row async for row in await session.stream(wanted.execution_options(yield_per=_AT_ONCE))]
        until = query.until or max([now, *(row.at for row in rows if row.at is not None)])
        steps = sorted((step for step in _steps_of(rows) if step.at <= until), key=lambda step: step.at)
        return LayerHistory(points=tuple(_points(steps, until, query.steps)))


def _steps_of(rows: Iterable[Any]) -> Iterator[_Step]:
    known = before = None
    for row in rows:
        if row.id != known:
            known, before = row.id, (Layer.HOT, row.word_count)
            yield _Step(row.started_at, Layer.HOT, row.word_count, row.word_count)
        if row.at is not None and before is not None:
            # A hot episode may have grown since; it leaves with what was counted for it.
            yield _Step(row.at, before[0], -before[1])
            before = Layer(row.layer), row.words
            yield _Step(row.at, *before)


def _points(steps: list[_Step], until: datetime, count: int) -> Iterator[LayerMoment]:
    if not steps:
        return
    first, words, said, done = steps[0].at, Counter[Layer](), 0, 0
    for number in range(count):
        at = first + (until - first) * (number / (count - 1))
        while done < len(steps) and (steps[done].at <= at or number == count - 1):
            words[steps[done].layer] += steps[done].words
            said += steps[done].said
            done += 1
        yield LayerMoment(at=at, words={layer: words[layer] for layer in Layer}, raw_words=said)

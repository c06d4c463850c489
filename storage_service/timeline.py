"""The timeline: events in the order of receipt, and their numbers by time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Row,
    cast,
    delete,
    func,
    literal,
    literal_column,
    select,
    text,
)

from bus_schema.timeline import (
    GetTimeline,
    GetTimelineBuckets,
    TimelineBuckets,
    TimelineEvent,
    TimelinePage,
    TimelineSeries,
    is_failure,
)
from mindbus.sql.database import Database
from retrieval.cursors import position_of
from storage_service.rows import draw_numbers, inserting
from storage_service.tables import FAILED, TimelineRow

_DAY_MS = 86_400_000.0
_PRUNED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events of every topic, each recorded once."""

    database: Database

    async def save(self, events: Sequence[TimelineEvent]) -> int:
        """Store events within the current transaction; returns the number of new ones."""
        rows = [
            {
                **event.model_dump(exclude={"envelope", "sequence"}),
                "envelope": event.envelope.model_dump(mode="json", exclude_none=True),
                "service": event.envelope.service,
                "is_failure": is_failure(event.envelope),
            }
            for event in events
        ]
        return await self.database.run(lambda connection: _insert(connection, rows))

    async def prune(self, before: datetime) -> int:
        """Delete the events from before that time, in transactions of their own; returns their number."""
        oldest = select(TimelineRow.sequence).where(TimelineRow.time < before).limit(_PRUNED_AT_ONCE)
        deletion = delete(TimelineRow).where(TimelineRow.sequence.in_(oldest.scalar_subquery()))
        deleted = 0
        while some := await self.database.write(lambda connection: connection.execute(deletion).rowcount):
            deleted += some
        return deleted

    async def extent(self) -> tuple[int, datetime | None]:
        """Number of events, and the time of the oldest one."""
        async with self.database.reading() as session:
            count, oldest = (await session.execute(select(func.count(), func.min(TimelineRow.time)))).one()
        return count, oldest

    async def page(self, request: GetTimeline) -> TimelinePage:
        """A page of events; forwards the last one has a cursor, too, after which later events come.

        Raises InvalidCursor.
        """
        position, sequence = position_of(request.cursor), TimelineRow.sequence
        query = select(TimelineRow).where(*_conditions(request), *_selected(request)).limit(request.limit)
        if request.newest_first:
            query = query.order_by(sequence.desc()).where(*([sequence < position] if request.cursor else []))
        else:
            query = query.order_by(sequence).where(sequence > position)
        async with self.database.reading() as session:
            rows = (await session.scalars(query)).all()
        items = tuple(TimelineEvent.model_validate(row, from_attributes=True) for row in rows)
        is_last = request.newest_first and len(rows) < request.limit
        last = rows[-1].sequence if rows else position
        return TimelinePage(items=items, next_cursor=None if is_last else str(last))

    async def buckets(self, request: GetTimelineBuckets) -> TimelineBuckets:
        """Numbers of events by service, topic and bucket of time."""
        row, number = TimelineRow, self._bucket_number(request).label("number")
        counted = select(row.service, row.topic, number, func.count(), func.sum(cast(row.is_failure, Integer)))
        # By the label: its expression would have parameters of its own in the GROUP BY.
        counted_to = [] if request.through is None else [row.sequence <= request.through]
        query = counted.where(*_conditions(request), *counted_to).group_by(row.service, row.topic, text("number"))
        async with self.database.reading() as session:
            return _series((await session.execute(query)).all(), request.buckets)

    def _bucket_number(self, request: GetTimelineBuckets) -> ColumnElement[int]:
        """In whole numbers, so that an event at the beginning of a bucket is never in the one before."""
        since = literal(request.since, TimelineRow.time.type)
        span_ms = int((request.until - request.since) / timedelta(milliseconds=1))
        if self.database.is_sqlite:
            days = func.julianday(TimelineRow.time) - func.julianday(since)
            passed_ms = cast(func.round(days * _DAY_MS), BigInteger)
        else:
            passed_ms = cast(func.floor(func.extract("epoch", TimelineRow.time - since) * 1000), BigInteger)
        return passed_ms * request.buckets // span_ms


def _series(rows: Iterable[Row[str, str, int, int, int]], buckets: int) -> TimelineBuckets:
    found: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    for service, topic, number, count, failures in rows:
        own = found.setdefault((service, topic), ([0] * buckets, [0] * buckets))
        # The database's arithmetic rounds.
        place = min(max(number, 0), buckets - 1)
        own[0][place] += count
        own[1][place] += failures
    return TimelineBuckets(
        series=tuple(
            TimelineSeries(service=service, topic=topic, events=tuple(events), failures=tuple(failures))
            for (service, topic), (events, failures) in sorted(found.items())
        )
    )


def _insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> int:
    last = draw_numbers(connection, TimelineRow.__tablename__, len(rows))
    # The unused number of an event that is there already leaves a gap, which is harmless.
    numbered = [row | {"sequence": last - len(rows) + number} for number, row in enumerate(rows, 1)]
    return len(inserting(TimelineRow).all_of(connection, numbered))


def _selected(request: GetTimeline) -> list[ColumnElement[bool]]:
    event = [] if request.event_id is None else [TimelineRow.event_id == request.event_id]
    return [*event, *([literal_column(FAILED, Boolean)] if request.failures_only else [])]


def _conditions(request: GetTimeline | GetTimelineBuckets) -> list[ColumnElement[bool]]:
    equal = {TimelineRow.user_id: request.user_id, TimelineRow.trace_id: request.trace_id}
    conditions = [column == value for column, value in equal.items() if value is not None]
    if request.topics:
        conditions.append(TimelineRow.topic.in_(request.topics))
    if request.since is not None:
        conditions.append(TimelineRow.time >= request.since)
    if request.until is not None:
        conditions.append(TimelineRow.time < request.until)
    return conditions

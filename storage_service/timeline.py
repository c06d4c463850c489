"""The timeline: events in the order of receipt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from bus_schema.timeline import GetTimeline, TimelineEvent, TimelinePage
from mindbus.sql.database import Database
from retrieval.cursors import position_of
from storage_service.rows import draw_numbers, inserting
from storage_service.tables import TimelineRow


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
            }
            for event in events
        ]
        return await self.database.run(lambda connection: _insert(connection, rows))

    async def page(self, request: GetTimeline) -> TimelinePage:
        """A page of events; forwards the last one has a cursor, too, after which later events come.

        Raises InvalidCursor.
        """
        position, sequence = position_of(request.cursor), TimelineRow.sequence
        query = select(TimelineRow).where(*_conditions(request)).limit(request.limit)
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


def _insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> int:
    last = draw_numbers(connection, TimelineRow.__tablename__, len(rows))
    # The unused number of an event that is there already leaves a gap, which is harmless.
    numbered = [row | {"sequence": last - len(rows) + number} for number, row in enumerate(rows, 1)]
    return len(connection.execute(inserting(connection, TimelineRow), numbered).all())


def _conditions(request: GetTimeline) -> list[ColumnElement[bool]]:
    equal = {TimelineRow.user_id: request.user_id, TimelineRow.trace_id: request.trace_id}
    conditions = [column == value for column, value in equal.items() if value is not None]
    if request.topics:
        conditions.append(TimelineRow.topic.in_(request.topics))
    if request.since is not None:
        conditions.append(TimelineRow.time >= request.since)
    if request.until is not None:
        conditions.append(TimelineRow.time < request.until)
    return conditions

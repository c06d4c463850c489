"""What is to be told, how far recurring work has come."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, select

from bus_schema.messages import Event, message_class
from mindbus.sql.database import Database
from storage_service.care.registry import Notice
from storage_service.care.tables import MarkRow, NoticeRow


class SqlNotices:
    """The part of the registry that remembers what care is still to be taken of."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database = database
        self.clock = clock

    async def notices(self, limit: int) -> Sequence[Notice]:
        """As in CareRegistry."""
        query = select(NoticeRow).order_by(NoticeRow.seq).limit(limit)
        async with self.database.reading() as session:
            return [_as_notice(row) for row in await session.scalars(query)]

    async def forget_notices(self, seqs: Collection[int]) -> None:
        """As in CareRegistry."""
        await self.database.session.execute(delete(NoticeRow).where(NoticeRow.seq.in_(seqs)))

    async def mark(self, name: str) -> tuple[str, datetime] | None:
        """As in CareRegistry."""
        async with self.database.reading() as session:
            row = await session.get(MarkRow, name)
            return None if row is None else (row.value, row.noted_at)

    async def set_mark(self, name: str, value: str) -> None:
        """As in CareRegistry."""
        async with self.database.transaction() as session:
            await session.merge(MarkRow(name=name, value=value, noted_at=self.clock()))


def notice_of(event: Event, trace_id: str | None = None, step_id: str | None = None) -> NoticeRow:
    """The row of an event that is to be told; it goes in with its cause."""
    return NoticeRow(type=event.wire.type, trace_id=trace_id, step_id=step_id, data=event.model_dump(mode="json"))


def _as_notice(row: NoticeRow) -> Notice:
    event = message_class(row.type).model_validate(row.data)
    if not isinstance(event, Event):
        raise TypeError(f"{row.type} is no event")
    return Notice(row.seq, event, row.trace_id, row.step_id)

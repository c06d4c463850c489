"""When the artifacts of each stretch of commits were made: where in the order of commit a search for a time begins."""

from datetime import datetime

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from storage_service.inserts import next_number, upserting
from storage_service.models import ManifestRow, SpanRow

# How many commits a stretch is; a migration knows it, too.
COMMITS = 256


async def next_position(session: AsyncSession, created_at: datetime) -> int:
    """As next_number for a manifest, whose time of creation is noted with it."""
    position = await next_number(session, ManifestRow.__tablename__)
    made = upserting(session, SpanRow).values(stretch=position // COMMITS, earliest=created_at, latest=created_at)
    widened = {
        "earliest": case((made.excluded.earliest < SpanRow.earliest, made.excluded.earliest), else_=SpanRow.earliest),
        "latest": case((made.excluded.latest > SpanRow.latest, made.excluded.latest), else_=SpanRow.latest),
    }
    await session.execute(made.on_conflict_do_update(index_elements=["stretch"], set_=widened))
    return position


async def positions_of(
    session: AsyncSession, position: int, made_after: datetime | None, made_before: datetime | None
) -> tuple[int, int] | None:
    """The first from this one on, with the last, at which an artifact made in that time may be; none without any."""
    overlaps: list[ColumnElement[bool]] = [SpanRow.stretch >= position // COMMITS]
    if made_after is not None:
        overlaps.append(SpanRow.latest >= made_after)
    if made_before is not None:
        overlaps.append(SpanRow.earliest < made_before)
    query = select(func.min(SpanRow.stretch), func.max(SpanRow.stretch)).where(*overlaps)
    found = (await session.execute(query)).one()
    if found[0] is None:
        return None
    first, last = found
    return max(position, first * COMMITS), (last + 1) * COMMITS - 1

"""When the artifacts of each stretch of commits were made: where in the order of commit a search for a time begins."""

from datetime import datetime
from functools import cache
from typing import cast

from sqlalchemy import Select, bindparam, case, func, select
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
    query = _overlapping(made_after is not None, made_before is not None)
    values = {"stretch": position // COMMITS, "made_after": made_after, "made_before": made_before}
    found = (await session.execute(query, values)).one()
    first, last = cast("tuple[int | None, int | None]", found)
    if first is None or last is None:
        return None
    return max(position, first * COMMITS), (last + 1) * COMMITS - 1


@cache
def _overlapping(has_begin: bool, has_end: bool) -> Select[int, int]:
    overlaps = [SpanRow.stretch >= bindparam("stretch", type_=SpanRow.stretch.type)]
    if has_begin:
        overlaps.append(SpanRow.latest >= bindparam("made_after", type_=SpanRow.latest.type))
    if has_end:
        overlaps.append(SpanRow.earliest < bindparam("made_before", type_=SpanRow.earliest.type))
    return select(func.min(SpanRow.stretch), func.max(SpanRow.stretch)).where(*overlaps)

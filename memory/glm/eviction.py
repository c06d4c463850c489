"""Eviction by priority: of an owner who has more units than are kept, the least needed ones are deleted."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, case, delete, func, insert, select

from memory.glm.store import note_vector_writes
from memory.glm.tables import FacetRow, FoundRow, KemRow
from mindbus.sql.database import Database

PRIORITY = "priority"
"""Key of metadata: a number, 0 where there is none; units of a higher one are kept longer."""

# So many are deleted within one transaction.
_AT_ONCE = 500


class PriorityEviction:
    """Keeps at most so many units of each owner, 0: all.

    What does not hold any more goes first, then what has the lowest priority, then what has been neither changed nor
    found for the longest time.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime], most_units: int) -> None:
        self._database, self._clock, self._most_units = database, clock, most_units
        self._found: dict[str, datetime] = {}

    def note_found(self, kem_ids: Iterable[str]) -> None:
        """Remember that a search has just found these."""
        if self._most_units:
            self._found |= dict.fromkeys(kem_ids, self._clock())

    async def delete_least(self) -> Sequence[str]:
        """Delete units beyond the bound, with the current transaction; returns their ids."""
        if not self._most_units:
            return ()
        await self._write_found()
        session = self._database.session
        number = func.count()
        owners = select(KemRow.owner, number).group_by(KemRow.owner).having(number > self._most_units)
        least: list[str] = []
        for owner, units in (await session.execute(owners)).all():
            room = min(units - self._most_units, _AT_ONCE - len(least))
            least += (await session.scalars(self._least_of(owner).limit(room))).all()
        if least:
            await session.execute(delete(KemRow).where(KemRow.id.in_(least)))
            await note_vector_writes(session, least)
        return least

    def _least_of(self, owner: str) -> Select[Any]:
        """Ids of an owner's units, those that are to go first at the beginning."""
        is_over: ColumnElement[bool] = KemRow.valid_to <= self._clock()
        of_unit = select(func.max(FacetRow.number)).where(FacetRow.kem_id == KemRow.id, FacetRow.key == PRIORITY)
        needed_at = case((FoundRow.found_at > KemRow.updated_at, FoundRow.found_at), else_=KemRow.updated_at)
        return (
            select(KemRow.id)
            .outerjoin(FoundRow, FoundRow.kem_id == KemRow.id)
            .where(KemRow.owner == owner)
            .order_by(
                case((is_over, 0), else_=1),
                func.coalesce(of_unit.scalar_subquery(), 0),
                needed_at,
                KemRow.id,
            )
        )

    async def _write_found(self) -> None:
        """Write down when units were found; those that are gone have nothing to write."""
        (found, self._found), session = (self._found, {}), self._database.session
        kem_ids = [*found]
        # In portions: a statement has room for so many ids.
        for portion in (kem_ids[at : at + _AT_ONCE] for at in range(0, len(kem_ids), _AT_ONCE)):
            left = (await session.scalars(select(KemRow.id).where(KemRow.id.in_(portion)))).all()
            await session.execute(delete(FoundRow).where(FoundRow.kem_id.in_(left)))
            rows: list[dict[str, Any]] = [{"kem_id": kem_id, "found_at": found[kem_id]} for kem_id in left]
            if rows:
                await session.execute(insert(FoundRow), rows)

"""Erasure of units: all, or those of and about one user."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, insert, or_, select

from bus_schema.kem import Kem
from memory.glm.store import note_vector_writes, save
from memory.glm.tables import FacetRow, KemRow, ReaderRow, VectorWriteRow, as_kem
from mindbus.sql.database import Database

# Metadata key that names the person whom a unit is about.
USER_KEY = "user_id"


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """Ids of the deleted units, and the units whose rights no longer name the user."""

    deleted: Sequence[str]
    changed: Sequence[Kem]


class KemErasure:
    """Deletes within the transaction of the current message."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def clear(self) -> int:
        """Delete all units; returns their number."""
        session = self.database.session
        writes = insert(VectorWriteRow).from_select(["kem_id"], select(KemRow.id).where(KemRow.vector.is_not(None)))
        await session.execute(writes)
        deleted = await session.execute(delete(KemRow).execution_options(synchronize_session=False))
        return int(deleted.rowcount)  # type: ignore[attr-defined]  # a delete's result is a CursorResult

    async def erase_user(self, user_id: str) -> ErasedUser:
        """Delete the user's own units and those whose metadata names the user; remove the user from all rights."""
        session, identity = self.database.session, f"user.{user_id}"
        about = select(FacetRow.kem_id).where(FacetRow.key == USER_KEY, FacetRow.text == user_id)
        erased = select(KemRow.id).where(or_(KemRow.owner == identity, KemRow.id.in_(about)))
        kem_ids = (await session.scalars(erased.order_by(KemRow.id).with_for_update())).all()
        await session.execute(delete(KemRow).where(KemRow.id.in_(erased)).execution_options(synchronize_session=False))
        await note_vector_writes(session, kem_ids)
        shared = select(ReaderRow.kem_id).where(ReaderRow.reader == identity)
        query = select(KemRow).where(KemRow.id.in_(shared)).order_by(KemRow.id).with_for_update()
        rows = {row.id: row for row in await session.scalars(query.execution_options(populate_existing=True))}
        changed = [_without(row, identity) for row in rows.values()]
        await save(session, changed, rows)
        return ErasedUser(kem_ids, [as_kem(row) for row in changed])


def _without(row: KemRow, identity: str) -> KemRow:
    columns = {name: getattr(row, name) for name in KemRow.__mapper__.attrs.keys()}  # noqa: SIM118  # no mapping
    names = {field: [each for each in columns[field] if each != identity] for field in ("readers", "writers")}
    return KemRow(**columns | names | {"version": row.version + 1})

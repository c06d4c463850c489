"""Units that somebody wants gone, whoever owns them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, insert, or_, select

from bus_schema.kem import Kem
from memory.glm.rows import as_kem
from memory.glm.store import note_vector_writes, save
from memory.glm.tables import FacetRow, KemRow, ReaderRow, VectorWriteRow
from mindbus.sql.database import Database

# What is noted of a person names the person so.
USER_KEY = "user_id"


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """Units that are gone, units that their user may no longer read or write."""

    gone: Sequence[str]
    changed: Sequence[Kem]


class KemErasure:
    """Every method is a part of the transaction of the message at hand."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def clear(self) -> int:
        """No unit is left; how many there were."""
        session = self.database.session
        noted = insert(VectorWriteRow).from_select(["kem_id"], select(KemRow.id).where(KemRow.vector.is_not(None)))
        await session.execute(noted)
        done = await session.execute(delete(KemRow).execution_options(synchronize_session=False))
        return int(done.rowcount)  # type: ignore[attr-defined]  # a delete's result is a CursorResult

    async def forget(self, user_id: str) -> ErasedUser:
        """The user's own units, those about the user by their metadata, the user's name wherever rights are given."""
        session, identity = self.database.session, f"user.{user_id}"
        about = select(FacetRow.kem_id).where(FacetRow.key == USER_KEY, FacetRow.text == user_id)
        theirs = select(KemRow.id).where(or_(KemRow.owner == identity, KemRow.id.in_(about)))
        gone = (await session.scalars(theirs.order_by(KemRow.id).with_for_update())).all()
        await session.execute(delete(KemRow).where(KemRow.id.in_(theirs)).execution_options(synchronize_session=False))
        await note_vector_writes(session, gone)
        named = select(ReaderRow.kem_id).where(ReaderRow.reader == identity)
        query = select(KemRow).where(KemRow.id.in_(named)).order_by(KemRow.id).with_for_update()
        rows = {row.id: row for row in await session.scalars(query.execution_options(populate_existing=True))}
        changed = [_without(row, identity) for row in rows.values()]
        await save(session, changed, rows)
        return ErasedUser(gone, [as_kem(row) for row in changed])


def _without(row: KemRow, identity: str) -> KemRow:
    columns = {name: getattr(row, name) for name in KemRow.__mapper__.attrs.keys()}  # noqa: SIM118  # no mapping
    names = {field: [each for each in columns[field] if each != identity] for field in ("readers", "writers")}
    return KemRow(**columns | names | {"version": row.version + 1})

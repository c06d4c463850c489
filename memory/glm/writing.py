"""Units that come in: new ones, ones in place of older ones."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.ids import mint
from bus_schema.kem import KemDraft, KemRights
from memory.embedding.space import EmbeddingSpace
from memory.errors import KemIdTaken, NotTheOwner, NotYoursToShare
from memory.glm.acl import is_writable, owns
from memory.glm.rows import body_columns, facet_rows, reader_rows, text_rows
from memory.glm.tables import FacetRow, KemRow, ReaderRow, TextRow, VectorWriteRow
from mindbus.errors import Rejected
from mindbus.principal import Principal
from mindbus.sql.database import Database
from mindbus.sql.inserting import insert_unless_there

_RIGHTS = set(KemRights.model_fields)
_COLUMNS = {attribute.key: attribute.columns[0].name for attribute in KemRow.__mapper__.column_attrs}


@dataclass(frozen=True, slots=True)
class Written:
    """A unit is in the rows, together with the message at hand."""

    row: KemRow
    is_new: bool


@dataclass(frozen=True, slots=True)
class RejectedDraft:
    """A unit is not; an older one of its id is as it was."""

    kem_id: str
    refusal: Rejected


class Writing:
    """A unit, what it can be found by, the note for the index of vectors: all in the transaction at hand, or none."""

    def __init__(self, database: Database, clock: Callable[[], datetime], space: EmbeddingSpace) -> None:
        self.database, self.clock, self.space = database, clock, space

    async def store(self, draft: KemDraft, principal: Principal) -> Written:
        """Raises WrongVector, NotTheOwner, KemIdTaken, NotYoursToShare."""
        (outcome,) = await self.store_all([draft], principal)
        if isinstance(outcome, RejectedDraft):
            raise outcome.refusal
        return outcome

    async def store_all(self, drafts: Sequence[KemDraft], principal: Principal) -> list[Written | RejectedDraft]:
        """Each for itself, in their order; of two with one id the later one stands."""
        return await self._store([(draft.id or mint("kem"), draft) for draft in drafts], principal)

    async def _store(
        self, drafts: Sequence[tuple[str, KemDraft]], principal: Principal
    ) -> list[Written | RejectedDraft]:
        session = self.database.session
        standing = await _standing(session, {kem_id for kem_id, _ in drafts})
        rows = dict(standing)
        outcomes = [self._outcome(kem_id, draft, principal, rows) for kem_id, draft in drafts]
        changed = [row for kem_id, row in sorted(rows.items()) if row is not standing.get(kem_id)]
        overtaken = await save(session, changed, standing)
        if not overtaken:
            return outcomes
        # Another instance was the first with these ids; what it stored decides.
        again = await self._store([each for each in drafts if each[0] in overtaken], principal)
        redone = iter(again)
        return [
            next(redone) if kem_id in overtaken else done for (kem_id, _), done in zip(drafts, outcomes, strict=True)
        ]

    def _outcome(
        self, kem_id: str, draft: KemDraft, principal: Principal, rows: dict[str, KemRow]
    ) -> Written | RejectedDraft:
        older = rows.get(kem_id)
        try:
            self.space.require(draft.embeddings)
            row = self._first(kem_id, draft, principal) if older is None else self._next(older, draft, principal)
        except Rejected as refusal:
            return RejectedDraft(kem_id, refusal)
        rows[kem_id] = row
        return Written(row, is_new=older is None)

    def _first(self, kem_id: str, draft: KemDraft, principal: Principal) -> KemRow:
        owner = draft.owner or principal.owner
        if owner != principal.owner and not principal.is_trusted:
            raise NotTheOwner(owner=owner)
        now = self.clock()
        return KemRow(id=kem_id, owner=owner, **body_columns(draft), created_at=now, updated_at=now, version=1)

    def _next(self, older: KemRow, draft: KemDraft, principal: Principal) -> KemRow:
        if not is_writable(older, principal):
            raise KemIdTaken(is_denied=True, kem_id=older.id)
        if draft.owner not in (None, older.owner):
            raise NotTheOwner(owner=draft.owner)
        columns = body_columns(draft) | self._rights(older, draft, principal)
        return KemRow(
            id=older.id,
            owner=older.owner,
            **columns,
            created_at=older.created_at,
            updated_at=self.clock(),
            version=older.version + 1,
        )

    @staticmethod
    def _rights(older: KemRow, draft: KemDraft, principal: Principal) -> dict[str, Any]:
        """Where a draft says nothing of them, they stay: what was private does not become public by the way."""
        given = {name: body_columns(draft)[name] for name in _RIGHTS}
        kept = {name: getattr(older, name) for name in _RIGHTS}
        if not _RIGHTS & draft.model_fields_set:
            return kept
        if given != kept and not owns(older, principal):
            raise NotYoursToShare(kem_id=older.id)
        return given


async def save(session: AsyncSession, rows: Sequence[KemRow], standing: Mapping[str, KemRow]) -> set[str]:
    """Put rows, with all that hangs on them, in place of those that stand; the ids that somebody has just taken."""
    new = [_columns(row) for row in rows if row.id not in standing]
    overtaken = {row["id"] for row in new} - await _insert_unless_taken(session, new)
    if replacing := [_columns(row) for row in rows if row.id in standing]:
        await session.execute(update(KemRow), replacing)
        ids = [row["id"] for row in replacing]
        for table in (FacetRow, ReaderRow, TextRow):
            await session.execute(delete(table).where(table.kem_id.in_(ids)))
    saved = [row for row in rows if row.id not in overtaken]
    await _insert(session, ReaderRow, [each for row in saved for each in reader_rows(row)])
    await _insert(session, FacetRow, [each for row in saved for each in facet_rows(row)])
    await _insert(session, TextRow, await asyncio.to_thread(text_rows, saved))
    await note(session, (row.id for row in saved if row.vector is not None or row.id in standing))
    return overtaken


async def note(session: AsyncSession, kem_ids: Iterable[str]) -> None:
    """Have the index of vectors hear of these units, once the transaction is committed."""
    await _insert(session, VectorWriteRow, [{"kem_id": kem_id} for kem_id in kem_ids])


async def _standing(session: AsyncSession, kem_ids: set[str]) -> dict[str, KemRow]:
    # In one order everywhere, so that two batches that meet wait for each other instead of locking each other out.
    query = select(KemRow).where(KemRow.id.in_(kem_ids)).order_by(KemRow.id).with_for_update()
    return {row.id: row for row in await session.scalars(query.execution_options(populate_existing=True))}


async def _insert_unless_taken(session: AsyncSession, rows: list[dict[str, Any]]) -> set[str]:
    if not rows:
        return set()
    table: Any = KemRow.__table__
    # Into the table itself: of many rows the mapper would take longer than the database.
    statement = insert_unless_there(session, table).returning(table.c.id)
    named = [{_COLUMNS[name]: value for name, value in row.items()} for row in rows]
    return set((await session.execute(statement, named)).scalars())


async def _insert(session: AsyncSession, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        await session.execute(insert(table.__table__), rows)


def _columns(row: KemRow) -> dict[str, Any]:
    # Rows are made whole, so that nothing has to be looked up for them.
    return {name: vars(row)[name] for name in _COLUMNS}

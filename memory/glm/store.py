"""Units that come in: new ones, ones in place of older ones."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.envelope import explain
from bus_schema.glm import KemChanges, UpdateKem
from bus_schema.ids import mint
from bus_schema.kem import Kem, KemDraft, KemRights
from memory.embedding.space import EmbeddingSpace
from memory.errors import (
    ChangesDoNotFit,
    KemIdTaken,
    KemVersionDiffers,
    NoSuchKem,
    NotTheOwner,
    NotYoursToShare,
    NotYoursToWrite,
)
from memory.glm.acl import is_readable, is_writable, owns
from memory.glm.rows import as_kem, body_columns, facet_rows, reader_rows, text_rows
from memory.glm.tables import FacetRow, KemRow, ReaderRow, TextRow, VectorWriteRow
from mindbus.errors import Rejected
from mindbus.principal import Principal
from mindbus.sql.database import Database
from mindbus.sql.tables import insert_or_ignore

_RIGHTS = set(KemRights.model_fields)
_COLUMNS = {attribute.key: attribute.columns[0].name for attribute in KemRow.__mapper__.column_attrs}


@dataclass(frozen=True, slots=True)
class StoredKem:
    """A unit is in the rows, together with the message at hand."""

    row: KemRow
    is_new: bool


@dataclass(frozen=True, slots=True)
class RejectedDraft:
    """A unit is not; an older one of its id is as it was."""

    kem_id: str
    refusal: Rejected


class KemStore:
    """A unit, what it can be found by, the note for the index of vectors: all in the transaction at hand, or none."""

    def __init__(self, database: Database, clock: Callable[[], datetime], space: EmbeddingSpace) -> None:
        self.database, self.clock, self.space = database, clock, space

    async def store(self, draft: KemDraft, principal: Principal) -> StoredKem:
        """Raises WrongVector, NotTheOwner, KemIdTaken, NotYoursToShare."""
        (outcome,) = await self.store_all([draft], principal)
        if isinstance(outcome, RejectedDraft):
            raise outcome.refusal
        return outcome

    async def store_all(self, drafts: Sequence[KemDraft], principal: Principal) -> list[StoredKem | RejectedDraft]:
        """Each for itself, in their order; of two with one id the later one stands."""
        return await self._store([(draft.id or mint("kem"), draft) for draft in drafts], principal)

    async def _store(
        self, drafts: Sequence[tuple[str, KemDraft]], principal: Principal
    ) -> list[StoredKem | RejectedDraft]:
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
    ) -> StoredKem | RejectedDraft:
        older = rows.get(kem_id)
        try:
            self.space.require(draft.embeddings)
            row = self._first(kem_id, draft, principal) if older is None else self._next(older, draft, principal)
        except Rejected as refusal:
            return RejectedDraft(kem_id, refusal)
        rows[kem_id] = row
        return StoredKem(row, is_new=older is None)

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
    await note_vector_writes(session, (row.id for row in saved if row.vector is not None or row.id in standing))
    return overtaken


async def note_vector_writes(session: AsyncSession, kem_ids: Iterable[str]) -> None:
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
    statement = insert_or_ignore(session, table).returning(table.c.id)
    named = [{_COLUMNS[name]: value for name, value in row.items()} for row in rows]
    return set((await session.execute(statement, named)).scalars())


async def _insert(session: AsyncSession, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        await session.execute(insert(table.__table__), rows)


def _columns(row: KemRow) -> dict[str, Any]:
    # Rows are made whole, so that nothing has to be looked up for them.
    return {name: vars(row)[name] for name in _COLUMNS}


class KemUpdates:
    """Changes to a unit that is there, together with the message at hand."""

    def __init__(self, database: Database, clock: Callable[[], datetime], space: EmbeddingSpace) -> None:
        self.database, self.clock, self.space = database, clock, space

    async def update(self, wanted: UpdateKem, principal: Principal) -> Kem:
        """Raises NoSuchKem, NotYoursToWrite, NotYoursToShare, KemVersionDiffers, WrongVector, ChangesDoNotFit."""
        row = await self._writable(wanted.kem_id, principal)
        if wanted.expected_version not in (None, row.version):
            raise KemVersionDiffers(expected_version=wanted.expected_version, version=row.version)
        if wanted.changes.model_fields_set & set(KemRights.model_fields) and not owns(row, principal):
            raise NotYoursToShare(kem_id=row.id)
        self.space.require(wanted.changes.embeddings)
        kem = _changed(as_kem(row), wanted.changes)
        kem = kem.model_copy(update={"version": row.version + 1, "updated_at": self.clock()})
        times = {"created_at": kem.created_at, "updated_at": kem.updated_at}
        changed = KemRow(id=kem.id, owner=kem.owner, **body_columns(kem), **times, version=kem.version)
        await save(self.database.session, [changed], {row.id: row})
        return kem

    async def delete(self, kem_id: str, principal: Principal) -> None:
        """Raises NoSuchKem, NotYoursToWrite."""
        await self._writable(kem_id, principal)
        session = self.database.session
        await session.execute(delete(KemRow).where(KemRow.id == kem_id))
        await note_vector_writes(session, [kem_id])

    async def _writable(self, kem_id: str, principal: Principal) -> KemRow:
        query = select(KemRow).where(KemRow.id == kem_id).with_for_update()
        row = await self.database.session.scalar(query.execution_options(populate_existing=True))
        if row is None or not is_readable(row, principal):
            raise NoSuchKem(is_denied=row is not None, kem_id=kem_id)
        if not is_writable(row, principal):
            raise NotYoursToWrite(kem_id=kem_id)
        return row


def _changed(kem: Kem, changes: KemChanges) -> Kem:
    fields: dict[str, Any] = {name: getattr(changes, name) for name in changes.model_fields_set}
    if fields.get("content") is not None:
        fields["ref"] = None
    elif fields.get("ref") is not None:
        fields["content"] = None
    if {"content", "ref"} & set(fields):
        # A vector of other words would have the unit found by what it no longer says.
        fields.setdefault("embeddings", None)
    if fields.get("visibility", "readers") != "readers":
        fields.setdefault("readers", ())
    try:
        return Kem.model_validate({name: getattr(kem, name) for name in Kem.model_fields} | fields)
    except ValidationError as invalid:
        raise ChangesDoNotFit(reason=explain(invalid)) from invalid

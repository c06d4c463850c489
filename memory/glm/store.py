"""Writes of units: storing, replacing, changing, deleting and erasing, with all that they are found by."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Select, delete, insert, inspect, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.envelope import explain
from bus_schema.glm import KemChanges, UpdateKem
from bus_schema.identities import Principal
from bus_schema.ids import mint
from bus_schema.kem import Kem, KemDraft
from memory.errors import ChangesDoNotFit, HoldsLater, KemVersionDiffers, NotYoursToShare
from memory.glm.tables import (
    FacetRow,
    KemRow,
    ReaderRow,
    TextRow,
    VectorWriteRow,
    as_kem,
    body_columns,
    facet_rows,
    text_rows,
)
from memory.rights import RIGHTS, owner_of_new, owns, readers_of, require_writable, rights_of_replacement
from mindbus.errors import Rejected
from mindbus.sql.database import Database
from mindbus.sql.tables import insert_or_ignore
from retrieval.embedding.embedder import EmbeddingSpace

# Metadata key that names the person whom a unit is about.
USER_KEY = "user_id"
_EXPIRED_AT_ONCE = 500
_COLUMNS = {attribute.key: attribute.columns[0].name for attribute in KemRow.__mapper__.column_attrs}


@dataclass(frozen=True, slots=True)
class StoredKem:
    """Outcome of a draft that is stored in the current transaction; `superseded` are older units that it changed."""

    row: KemRow
    is_new: bool
    superseded: tuple[KemRow, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedDraft:
    """Outcome of a draft that is refused; an older unit of its id is unchanged."""

    kem_id: str
    rejection: Rejected


class KemStore:
    """Writes a unit, its facets, readers and stems, and the vector write of the outbox, all in one transaction."""

    def __init__(self, database: Database, clock: Callable[[], datetime], space: EmbeddingSpace) -> None:
        self.database, self.clock, self.space = database, clock, space

    async def store(self, draft: KemDraft, principal: Principal) -> StoredKem:
        """Store a new unit or replace one; what it supersedes holds until it does.

        Raises WrongVector, NotTheOwner, KemIdTaken, NotYoursToShare, NoSuchKem, NotYoursToWrite, HoldsLater.
        """
        (outcome,) = await self.store_all([draft], principal)
        if isinstance(outcome, RejectedDraft):
            raise outcome.rejection
        return outcome

    async def store_all(self, drafts: Sequence[KemDraft], principal: Principal) -> list[StoredKem | RejectedDraft]:
        """One outcome per draft, in their order; of two drafts with one id the later one stands."""
        return await self._store([(draft.id or mint("kem"), draft) for draft in drafts], principal)

    async def update(self, command: UpdateKem, principal: Principal) -> Kem:
        """Raises NoSuchKem, NotYoursToWrite, NotYoursToShare, KemVersionDiffers, WrongVector, ChangesDoNotFit."""
        row = await self._writable(command.kem_id, principal)
        if command.expected_version not in (None, row.version):
            raise KemVersionDiffers(expected_version=command.expected_version, version=row.version)
        if command.changes.model_fields_set & RIGHTS and not owns(row, principal):
            raise NotYoursToShare(kem_id=row.id)
        self.space.require(command.changes.embeddings)
        kem = _apply_changes(as_kem(row), command.changes)
        new = {"version": row.version + 1, "updated_at": self.clock(), **end_of_next(row, kem.valid_to, self.clock())}
        kem = kem.model_copy(update=new)
        changed = KemRow(id=kem.id, owner=kem.owner, **body_columns(kem), created_at=kem.created_at, **new)
        await save(self.database.session, [changed], {row.id: row})
        return kem

    async def delete(self, kem_id: str, principal: Principal) -> None:
        """Raises NoSuchKem, NotYoursToWrite."""
        await self._writable(kem_id, principal)
        await self.database.session.execute(delete(KemRow).where(KemRow.id == kem_id))
        await note_vector_writes(self.database.session, [kem_id])

    async def delete_expired(self, limit: int = _EXPIRED_AT_ONCE) -> Sequence[str]:
        """Delete units whose time has come, the oldest first; returns their ids."""
        session = self.database.session
        due = select(KemRow.id).where(KemRow.expires_at <= self.clock()).order_by(KemRow.expires_at).limit(limit)
        kem_ids = (await session.scalars(due.with_for_update())).all()
        if kem_ids:
            await session.execute(delete(KemRow).where(KemRow.id.in_(kem_ids)))
            await note_vector_writes(session, kem_ids)
        return kem_ids

    async def clear(self) -> int:
        """Delete all units; returns their number."""
        session = self.database.session
        writes = insert(VectorWriteRow).from_select(["kem_id"], select(KemRow.id).where(KemRow.vector.is_not(None)))
        await session.execute(writes)
        deleted = await session.execute(delete(KemRow).execution_options(synchronize_session=False))
        await self._purge_words()
        return int(deleted.rowcount)  # type: ignore[attr-defined]  # a delete's result is a CursorResult

    async def erase_user(self, user_id: str) -> tuple[Sequence[str], Sequence[Kem]]:
        """Delete the user's own units and those whose metadata names the user; remove the user from all rights.

        Returns the ids of the deleted units, and the units whose rights no longer name the user.
        """
        session, identity = self.database.session, f"user.{user_id}"
        about = select(FacetRow.kem_id).where(FacetRow.key == USER_KEY, FacetRow.text == user_id)
        erased = select(KemRow.id).where(or_(KemRow.owner == identity, KemRow.id.in_(about)))
        kem_ids = (await session.scalars(erased.order_by(KemRow.id).with_for_update())).all()
        await session.execute(delete(KemRow).where(KemRow.id.in_(erased)).execution_options(synchronize_session=False))
        await self._purge_words()
        await note_vector_writes(session, kem_ids)
        rows = await _lock_rows(session, select(ReaderRow.kem_id).where(ReaderRow.reader == identity))
        changed = [_without(row, identity) for row in rows.values()]
        await save(session, changed, rows)
        return kem_ids, [as_kem(row) for row in changed]

    async def _purge_words(self) -> None:
        """Merge the full-text index of SQLite, which otherwise keeps the words of deleted texts in older segments."""
        if self.database.is_sqlite:
            await self.database.session.execute(text("INSERT INTO kem_words (kem_words) VALUES ('optimize')"))

    async def _writable(self, kem_id: str, principal: Principal) -> KemRow:
        statement = select(KemRow).where(KemRow.id == kem_id).with_for_update()
        row = await self.database.session.scalar(statement.execution_options(populate_existing=True))
        return require_writable(row, kem_id, principal)

    async def _store(
        self, drafts: Sequence[tuple[str, KemDraft]], principal: Principal
    ) -> list[StoredKem | RejectedDraft]:
        session = self.database.session
        superseded = {older_id for _, draft in drafts for older_id in draft.supersedes}
        older = await _lock_rows(session, superseded.union(kem_id for kem_id, _ in drafts))
        rows = dict(older)
        outcomes = [self._outcome(kem_id, draft, principal, rows) for kem_id, draft in drafts]
        changed = [row for kem_id, row in sorted(rows.items()) if row is not older.get(kem_id)]
        overtaken = await save(session, changed, older)
        if not overtaken:
            return outcomes
        # Another instance was the first with these ids; what it stored decides.
        retried = iter(await self._store([draft for draft in drafts if draft[0] in overtaken], principal))
        return [
            next(retried) if kem_id in overtaken else outcome
            for (kem_id, _), outcome in zip(drafts, outcomes, strict=True)
        ]

    def _outcome(
        self, kem_id: str, draft: KemDraft, principal: Principal, rows: dict[str, KemRow]
    ) -> StoredKem | RejectedDraft:
        older = rows.get(kem_id)
        try:
            self.space.require(draft.embeddings)
            row = self._new(kem_id, draft, principal) if older is None else self._next(older, draft, principal)
            if draft.supersedes and draft.valid_from is draft.valid_to is None:
                # It holds from when the older ones no longer do.
                row.valid_from = (older.valid_from if older else None) or row.updated_at
            for each in draft.supersedes:
                _require_supersedable(rows.get(each), each, row, principal)
        except Rejected as rejection:
            return RejectedDraft(kem_id, rejection)
        superseded = [self._superseded(rows[each], row) for each in draft.supersedes]
        changed = {each.id: each for each in superseded if each is not rows[each.id]}
        rows |= {**changed, kem_id: row}
        return StoredKem(row, older is None, tuple(changed.values()))

    def _superseded(self, older: KemRow, by: KemRow) -> KemRow:
        """The older unit, which holds until the newer one does."""
        until = by.valid_from or by.updated_at
        if older.valid_to is not None and older.valid_to <= until:
            return older
        if inspect(older).transient:
            # Made by a draft before this one in the batch, and not yet stored.
            older.valid_to, older.superseded_by = until, by.id
            return older
        now = self.clock()
        changes = {"valid_to": until, "superseded_by": by.id, "version": older.version + 1, "updated_at": now}
        return KemRow(**_columns(older) | changes | {"end_learnt_at": now})

    def _new(self, kem_id: str, draft: KemDraft, principal: Principal) -> KemRow:
        owner, now = owner_of_new(draft, principal), self.clock()
        times = {"created_at": now, "updated_at": now}
        unended = {"superseded_by": None, "end_learnt_at": None}
        return KemRow(id=kem_id, owner=owner, **body_columns(draft), **times, version=1, **unended)

    def _next(self, older: KemRow, draft: KemDraft, principal: Principal) -> KemRow:
        columns = body_columns(draft)
        columns |= rights_of_replacement(columns, draft, older, principal)
        times = {"created_at": older.created_at, "updated_at": self.clock()}
        kept = {"version": older.version + 1, **end_of_next(older, draft.valid_to, self.clock())}
        return KemRow(id=older.id, owner=older.owner, **columns, **times, **kept)


async def save(session: AsyncSession, rows: Sequence[KemRow], older: Mapping[str, KemRow]) -> set[str]:
    """Insert rows, or replace the `older` ones, with all that depends on them; returns ids taken meanwhile."""
    new = [_columns(row) for row in rows if row.id not in older]
    overtaken = {row["id"] for row in new} - await _insert_new(session, new)
    if replacing := [_columns(row) for row in rows if row.id in older]:
        await session.execute(update(KemRow), replacing)
        ids = [row["id"] for row in replacing]
        for table in (FacetRow, ReaderRow, TextRow):
            await session.execute(delete(table).where(table.kem_id.in_(ids)))
    saved = [row for row in rows if row.id not in overtaken]
    readers = [{"kem_id": row.id, "reader": reader} for row in saved for reader in readers_of(row)]
    await _insert(session, ReaderRow, readers)
    await _insert(session, FacetRow, [facet for row in saved for facet in facet_rows(row)])
    await _insert(session, TextRow, await asyncio.to_thread(text_rows, saved))
    await note_vector_writes(session, (row.id for row in saved if row.vector is not None or row.id in older))
    return overtaken


async def note_vector_writes(session: AsyncSession, kem_ids: Iterable[str]) -> None:
    """Put these units into the outbox of the vector index, with the current transaction."""
    await _insert(session, VectorWriteRow, [{"kem_id": kem_id} for kem_id in kem_ids])


async def _lock_rows(session: AsyncSession, kem_ids: set[str] | Select[str]) -> dict[str, KemRow]:
    # In one order everywhere, so that two batches with common ids cannot deadlock.
    query = select(KemRow).where(KemRow.id.in_(kem_ids)).order_by(KemRow.id).with_for_update()
    return {row.id: row for row in await session.scalars(query.execution_options(populate_existing=True))}


async def _insert_new(session: AsyncSession, rows: list[dict[str, Any]]) -> set[str]:
    if not rows:
        return set()
    table: Any = KemRow.__table__
    # Into the table itself: for many rows the mapper would take longer than the database.
    statement = insert_or_ignore(session, table).returning(table.c.id)
    named = [{_COLUMNS[name]: value for name, value in row.items()} for row in rows]
    return set((await session.execute(statement, named)).scalars())


async def _insert(session: AsyncSession, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        await session.execute(insert(table.__table__), rows)


def _require_supersedable(older: KemRow | None, kem_id: str, by: KemRow, principal: Principal) -> None:
    """Raises NoSuchKem, NotYoursToWrite, HoldsLater."""
    starts = require_writable(older, kem_id, principal).valid_from
    if starts is not None and starts >= (by.valid_from or by.updated_at):
        raise HoldsLater(kem_id=kem_id, valid_from=starts.isoformat())


def end_of_next(row: KemRow | Kem, valid_to: datetime | None, now: datetime) -> dict[str, Any]:
    """Which unit has superseded this one, and when that was learnt, as long as nobody sets or lifts its end."""
    if valid_to == row.valid_to:
        return {"superseded_by": row.superseded_by, "end_learnt_at": row.end_learnt_at}
    return {"superseded_by": None, "end_learnt_at": now if valid_to is not None else None}


def _columns(row: KemRow) -> dict[str, Any]:
    # From `vars`, so that the mapper looks nothing up.
    return {name: vars(row)[name] for name in _COLUMNS}


def _without(row: KemRow, identity: str) -> KemRow:
    names = {
        field: [member for member in getattr(row, field) if member != identity] for field in ("readers", "writers")
    }
    return KemRow(**_columns(row) | names | {"version": row.version + 1})


def _apply_changes(kem: Kem, changes: KemChanges) -> Kem:
    fields: dict[str, Any] = {name: getattr(changes, name) for name in changes.model_fields_set}
    if fields.get("content") is not None:
        fields["ref"] = None
    elif fields.get("ref") is not None:
        fields["content"] = None
    if {"content", "ref"} & set(fields):
        # The vector of the older content would find the unit by what it no longer says.
        fields.setdefault("embeddings", None)
    if fields.get("visibility", "readers") != "readers":
        fields.setdefault("readers", ())
    try:
        return Kem.model_validate({name: getattr(kem, name) for name in Kem.model_fields} | fields)
    except ValidationError as invalid:
        raise ChangesDoNotFit(reason=explain(invalid)) from invalid

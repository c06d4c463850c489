"""Units that change in part, units that go."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import delete, select

from bus_schema.envelope import explain
from bus_schema.glm import KemChanges, UpdateKem
from bus_schema.kem import Kem, KemRights
from memory.embedding.space import EmbeddingSpace
from memory.errors import ChangesDoNotFit, NoSuchKem, NotYoursToShare, NotYoursToWrite, VersionDiffers
from memory.glm.acl import is_readable, is_writable, owns
from memory.glm.rows import as_kem, body_columns
from memory.glm.tables import KemRow
from memory.glm.writing import note, save
from mindbus.principal import Principal
from mindbus.sql.database import Database


class Changing:
    """Changes to a unit that is there, together with the message at hand."""

    def __init__(self, database: Database, clock: Callable[[], datetime], space: EmbeddingSpace) -> None:
        self.database, self.clock, self.space = database, clock, space

    async def update(self, wanted: UpdateKem, principal: Principal) -> Kem:
        """Raises NoSuchKem, NotYoursToWrite, NotYoursToShare, VersionDiffers, WrongVector, ChangesDoNotFit."""
        row = await self._writable(wanted.kem_id, principal)
        if wanted.expected_version not in (None, row.version):
            raise VersionDiffers(expected_version=wanted.expected_version, version=row.version)
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
        await note(session, [kem_id])

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

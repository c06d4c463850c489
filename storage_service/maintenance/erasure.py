"""Erasure: data of a user, or all data, is deleted with its bytes and not kept among the orphans."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, or_, select, true, update
from sqlalchemy.orm import DeclarativeBase

from bus_schema.dialogue import conversation_trace
from bus_schema.identities import Principal
from mindbus.files.keys import OBJECTS
from mindbus.sql.database import Database
from storage_service.acl import require_operator
from storage_service.blobs import ORPHANS, STAGING, Blobs, ContentGeneration, StoredFile, content_of, pages_of
from storage_service.maintenance.manifest_copies import CLAIMS, MANIFESTS, copy_key
from storage_service.maintenance.registry import MaintenanceRegistry, Removal
from storage_service.maintenance.sql_removals import as_removal_row, is_held
from storage_service.maintenance.survey import strays_of
from storage_service.records import FactRow, UserRow
from storage_service.rows import lock_blob, placed_content, upserting
from storage_service.tables import (
    DELETING,
    LIVE,
    PINNED,
    AgentDatumRow,
    BlobRow,
    CreationRangeRow,
    DialogueMessageRow,
    DialogueRow,
    FragmentRow,
    InputRow,
    ManifestRow,
    NotificationRow,
    RemovalRow,
    SpentUploadRow,
    TimelineRow,
    TraceMemberRow,
    TraceRow,
)
from storage_service.tasks import TaskRow

# Owner of the artifacts of an erased user: their id, type and size stay, so that no id is reused.
FORGOTTEN = "svc.forgotten"
_FORGOTTEN_TRACE = "forgotten"
_AT_ONCE = 500

_MESSAGE_TABLES: Mapping[str, type[DeclarativeBase]] = {
    "messages": DialogueMessageRow,
    "fragments": FragmentRow,
    "dialogues": DialogueRow,
    "events": TimelineRow,
    "agent_data": AgentDatumRow,
    "users": UserRow,
    "tasks": TaskRow,
    "facts": FactRow,
}
# Rows that refer to a manifest are deleted before it.
_ARTIFACT_TABLES: Mapping[str, type[DeclarativeBase]] = {
    "inputs": InputRow,
    "artifacts": ManifestRow,
    "spans": CreationRangeRow,
    "uploads": SpentUploadRow,
    "members": TraceMemberRow,
    "traces": TraceRow,
    "notices": NotificationRow,
}
_COUNTED = frozenset({*_MESSAGE_TABLES, "artifacts", "traces"})


@dataclass(frozen=True, slots=True)
class ErasedRows:
    """Erasure of rows, within the current transaction."""

    database: Database
    clock: Callable[[], datetime]

    async def forget_all(self, files: Iterable[StoredFile]) -> dict[str, int]:
        """Delete all rows of data, and remove their files and the files given."""
        session = self.database.session
        live = BlobRow.state.in_((PINNED, LIVE))
        contents = (await session.scalars(select(BlobRow).where(live))).all()
        await session.execute(update(BlobRow).where(live).values(state=DELETING, condemned_at=self.clock()))
        copies = [copy_key(artifact_id) for artifact_id in await session.scalars(select(ManifestRow.id))]
        uploads = await session.scalars(select(SpentUploadRow.upload_key))
        # Removals under way, too, are kept nowhere.
        await session.execute(update(RemovalRow).values(target=""))
        removed = await self._remove([_of_file(file.key, file.size_bytes) for file in files])
        removed += await self._remove([_of_file(key) for key in (*copies, *uploads)])
        removed += await self._remove([_of_content(placed_content(row), row.size_bytes) for row in contents])
        tables = {**_MESSAGE_TABLES, **_ARTIFACT_TABLES}
        counts = {kind: await self._delete(table, true()) for kind, table in tables.items()}
        return {kind: count for kind, count in counts.items() if kind in _COUNTED} | {"files": removed}

    async def forget_user(self, user_id: str, orphans: Sequence[StoredFile]) -> dict[str, int]:
        """Delete a user's dialogue, agent data and events; erase the artifacts of the user or of the dialogue."""
        trace = conversation_trace(user_id)
        conditions = {
            "messages": DialogueMessageRow.user_id == user_id,
            "fragments": FragmentRow.user_id == user_id,
            "dialogues": DialogueRow.user_id == user_id,
            "events": or_(TimelineRow.user_id == user_id, TimelineRow.trace_id == trace),
            "agent_data": _is_under(user_id),
            "users": UserRow.user_id == user_id,
            "tasks": TaskRow.asked_by == user_id,
            "facts": FactRow.said_by == user_id,
        }
        counts = {kind: await self._delete(_MESSAGE_TABLES[kind], which) for kind, which in conditions.items()}
        await self.database.session.execute(update(TaskRow).where(TaskRow.owner_id == user_id).values(owner_id=None))
        condition = or_(ManifestRow.owner == f"user.{user_id}", ManifestRow.trace_id == trace)
        return counts | await self._forget_artifacts(condition, orphans)

    async def _forget_artifacts(self, condition: ColumnElement[bool], orphans: Sequence[StoredFile]) -> dict[str, int]:
        session = self.database.session
        rows = (await session.scalars(select(ManifestRow).where(condition))).all()
        contents = {ContentGeneration(row.sha256, row.generation) for row in rows}
        for row in rows:
            row.expired_at = row.expired_at or self.clock()
            row.owner = row.created_by = FORGOTTEN
            row.trace_id, row.step_id, row.context = _FORGOTTEN_TRACE, None, None
        await session.flush()
        waiting = select(ManifestRow.id).where(ManifestRow.owner == FORGOTTEN)
        spent = delete(SpentUploadRow).where(SpentUploadRow.artifact_id.in_(waiting))
        uploads = await session.scalars(spent.returning(SpentUploadRow.upload_key))
        files = [_of_file(key) for key in (*(copy_key(row.id) for row in rows), *uploads)]
        lost = {content.file_key for content in contents if await self._release(content)}
        files += [_of_file(orphan.key, orphan.size_bytes) for orphan in orphans if _original(orphan.key) in lost]
        return {"artifacts": len(rows), "files": await self._remove(files) + len(lost)}

    async def _release(self, content: ContentGeneration) -> bool:
        """Remove the bytes of a content without artifacts; whether it has none."""
        session = self.database.session
        # A registration of the same bytes takes the same lock.
        blob = await lock_blob(session, content.sha256)
        if await is_held(session, content):
            return False
        if blob is not None and blob.generation == content.generation and blob.state in (PINNED, LIVE):
            blob.state, blob.condemned_at = DELETING, self.clock()
            await self._remove([_of_content(placed_content(blob), blob.size_bytes)])
        under_way = (RemovalRow.sha256 == content.sha256, RemovalRow.generation == content.generation)
        await session.execute(update(RemovalRow).where(*under_way).values(target=""))
        return True

    async def _remove(self, removals: Iterable[Removal]) -> int:
        session, now = self.database.session, self.clock()
        rows = [as_removal_row(removal, now) for removal in removals]
        statement = upserting(session.get_bind().dialect.name, RemovalRow).on_conflict_do_nothing()
        for first in range(0, len(rows), _AT_ONCE):
            await session.execute(statement, rows[first : first + _AT_ONCE])
        return len(rows)

    async def _delete(self, table: type[DeclarativeBase], which: ColumnElement[bool]) -> int:
        done = await self.database.session.execute(
            delete(table).where(which).execution_options(synchronize_session=False)
        )
        return int(done.rowcount)  # type: ignore[attr-defined]  # a delete's result is a CursorResult


def _is_under(user_id: str) -> ColumnElement[bool]:
    key = AgentDatumRow.key
    return or_(key == user_id, *(key.startswith(f"{user_id}{mark}", autoescape=True) for mark in "/:"))


def _original(orphan: str) -> str:
    """The key that an orphan had, behind `orphans` and the day."""
    return orphan.split("/", 2)[-1]


def _of_file(key: str, size_bytes: int = 0) -> Removal:
    return Removal(key, "", "unknown", size_bytes)


def _of_content(content: ContentGeneration, size_bytes: int | None) -> Removal:
    return Removal(content.key, "", "unused", size_bytes or 0, content)


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases all data or a user's, deciding within the current transaction; files are removed afterwards.

    Generations of contents are kept: a process that resumes late with an old key can still harm nothing.
    """

    registry: MaintenanceRegistry
    rows: ErasedRows
    blobs: Blobs

    async def clear(self, principal: Principal) -> Mapping[str, int]:
        """Erase everything; returns counts by kind. Raises NotAnOperator, OSError."""
        require_operator(principal)
        await self._outlaw_strays()
        # Listed before the transaction, which would block all others on SQLite.
        files = [file for folder in (STAGING, ORPHANS, CLAIMS, MANIFESTS) for file in await self._under(folder)]
        return await self.rows.forget_all(files)

    async def forget(self, principal: Principal, user_id: str) -> Mapping[str, int]:
        """Erase a user's own data; returns counts by kind. What others made of it stays. Raises NotAnOperator."""
        require_operator(principal)
        return await self.rows.forget_user(user_id, await self._under(ORPHANS))

    async def _under(self, folder: str) -> Sequence[StoredFile]:
        return [file async for file in self.blobs.listing(folder)]

    async def _outlaw_strays(self) -> None:
        """Remove objects without a manifest: no row leads to them."""
        async for page in pages_of(self.blobs.listing(OBJECTS)):
            for file, reason in await strays_of(self.registry, page):
                removal = Removal(file.key, "", reason, file.size_bytes, content_of(file.key))
                await self.registry.remove_stray(removal)

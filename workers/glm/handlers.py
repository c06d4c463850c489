"""Handlers of the global memory: knowledge units, and maintenance by operators."""

from collections.abc import Awaitable, Callable, Sequence

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from bus_schema.glm import (
    BatchItem,
    BatchReport,
    BatchStoreKems,
    CheckMemory,
    DeleteKem,
    EmbeddedTexts,
    EmbedTexts,
    GetMemoryStats,
    KemDeleted,
    KemPage,
    KemStored,
    KemUpdated,
    MemoryReport,
    MemoryStats,
    Reindex,
    ReindexProgress,
    RetrieveKems,
    StoreKem,
    UpdateKem,
)
from bus_schema.identities import Principal
from bus_schema.kem import Kem, KemDraft
from memory.glm.migration import ModelMigration
from memory.glm.service import GlobalMemory
from memory.glm.store import RejectedDraft, StoredKem
from memory.glm.tables import as_kem
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import every, on_command, time_limit
from mindbus.bus.telemetry import RECALLED, series
from mindbus.sql.inbox import SqlInbox
from retrieval.embedding.embedder import EmbedderMissing
from workers.kem_drafts import DraftReader

# Shared working memory caches units for others and applies their rights itself.
_TRUSTED = "swm"
_CATCH_UP_WITHIN_S = 5.0
_SETTLED_WITHIN_S = 10.0
_PORTION_S = 5.0


class CurrentMemory:
    """Holds the memory that answers now; it is opened anew at each start and after a change of the embedding model."""

    def __init__(self, open_memory: Callable[[], Awaitable[GlobalMemory]]) -> None:
        self._open_memory = open_memory
        self._opened: GlobalMemory | None = None

    @property
    def memory(self) -> GlobalMemory:
        """The opened memory. Raises RuntimeError before `open`."""
        if self._opened is None:
            raise RuntimeError("the global memory is not open")
        return self._opened

    async def open(self) -> None:
        """Close what was open, open it anew. Raises what `open_memory` raises."""
        await self.close()
        self._opened = await self._open_memory()

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def replace(self) -> None:
        """Answer from the memory as it is after a migration, clear the older index."""
        older, self._opened = self.memory, await self._open_memory()
        older.notify()
        await older.relay.catch_up(_CATCH_UP_WITHIN_S)
        await older.index.clear()
        await older.close()
        await self.memory.relay.reconcile()


class KemHandlers:
    """Handlers of knowledge units (KEMs); vectors follow what is committed with the message."""

    def __init__(self, current: CurrentMemory, drafts: DraftReader) -> None:
        self._current, self._drafts = current, drafts

    @on_command
    async def store(self, command: StoreKem, context: MessageContext) -> tuple[Kem | KemStored | KemUpdated, ...]:
        (draft,) = await self._current.memory.backlog.embed_drafts([command.kem])
        stored = await self._current.memory.store.store(draft, principal_of(context))
        kem = as_kem(stored.row)
        self._current.memory.after_commit()
        return kem, KemStored.of(kem), *(KemUpdated.of(as_kem(row)) for row in stored.superseded)

    @on_command
    async def store_batch(
        self, command: BatchStoreKems, context: MessageContext
    ) -> tuple[BatchReport | KemStored | KemUpdated, ...]:
        drafts: Sequence[KemDraft] = (
            command.kems if command.ref is None else await self._drafts.read(command.ref, context)
        )
        outcomes = await self._current.memory.store.store_all(
            await self._current.memory.backlog.embed_drafts(drafts), principal_of(context)
        )
        self._current.memory.after_commit()
        # Of two with one id, the later one stands.
        stored = {outcome.row.id: outcome.row for outcome in outcomes if isinstance(outcome, StoredKem)}
        superseded = {
            row.id: row for outcome in outcomes if isinstance(outcome, StoredKem) for row in outcome.superseded
        }
        report = BatchReport(items=tuple(map(_item, outcomes)))
        changes = (KemUpdated.of(as_kem(row, has_vector=False)) for row in superseded.values())
        return (report, *(KemStored.of(as_kem(row, has_vector=False)) for row in stored.values()), *changes)

    @on_command
    async def embed(self, query: EmbedTexts) -> EmbeddedTexts:
        embedder = self._current.memory.backlog.embedder
        if embedder is None:
            raise EmbedderMissing
        return EmbeddedTexts(items=tuple(await embedder.passages(query.texts)))

    @on_command
    async def retrieve(self, query: RetrieveKems, context: MessageContext) -> KemPage:
        page = await self._current.memory.search.page(query, principal_of(context))
        if query.query.text_query is not None and query.cursor is None:
            series(RECALLED, "shared", "found" if page.items else "nothing").inc()
            self._current.memory.eviction.note_found(item.kem.id for item in page.items)
        return page

    @on_command
    async def update(self, command: UpdateKem, context: MessageContext) -> tuple[Kem, KemUpdated]:
        changes = await self._current.memory.backlog.embed_changes(command.changes)
        kem = await self._current.memory.store.update(
            command.model_copy(update={"changes": changes}), principal_of(context)
        )
        self._current.memory.after_commit()
        return kem, KemUpdated.of(kem)

    @every(seconds=30)
    async def delete_expired(self) -> tuple[KemDeleted, ...]:
        """Delete units whose time has come; subscribers and copies at hand hear of it."""
        kem_ids = await self._current.memory.store.delete_expired()
        self._current.memory.after_commit()
        return tuple(KemDeleted(kem_id=kem_id) for kem_id in kem_ids)

    @every(seconds=60)
    async def evict_least(self) -> tuple[KemDeleted, ...]:
        """Delete what an owner has beyond MINDBUS_GLM_MAX_UNITS, the least needed first; that is told as well."""
        kem_ids = await self._current.memory.eviction.delete_least()
        self._current.memory.after_commit()
        return tuple(KemDeleted(kem_id=kem_id) for kem_id in kem_ids)

    @on_command
    async def delete(self, command: DeleteKem, context: MessageContext) -> KemDeleted:
        await self._current.memory.store.delete(command.kem_id, principal_of(context))
        self._current.memory.after_commit()
        return KemDeleted(kem_id=command.kem_id)


class MemoryMaintenance:
    """Handlers of operators: check, reindex, statistics, erasure."""

    def __init__(self, current: CurrentMemory, inbox: SqlInbox, migration: ModelMigration) -> None:
        self._current, self._inbox, self._migration = current, inbox, migration

    @on_command
    @time_limit(seconds=3600)
    async def check(self, _command: CheckMemory, context: MessageContext) -> MemoryReport:
        await self._current.memory.relay.catch_up(_SETTLED_WITHIN_S)
        return await self._current.memory.relay.check()

    @on_command
    async def reindex(self, command: Reindex, context: MessageContext) -> ReindexProgress:
        """Reindex a portion; the next command continues."""
        progress = await self._migration.advance(command.model, _PORTION_S)
        if progress.done == progress.total and self._current.memory.index.space.model != command.model:
            await self._current.replace()
        return progress

    @on_command
    async def stats(self, _query: GetMemoryStats, context: MessageContext) -> MemoryStats:
        memory = self._current.memory
        return await memory.queries.statistics(principal_of(context), memory.index.space)

    @on_command
    @time_limit(seconds=3600)
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        kems = await self._current.memory.store.clear()
        self._current.memory.after_commit()
        await self._inbox.forget()
        return Removed.of({"kems": kems})

    @on_command
    async def delete_user(
        self, command: DeleteUser, context: MessageContext
    ) -> tuple[Removed | KemDeleted | KemUpdated, ...]:
        user_id = command.user_id
        deleted, changed = await self._current.memory.store.erase_user(user_id)
        self._current.memory.after_commit()
        await self._inbox.forget(user_id, f"user.{user_id}", conversation_trace(user_id))
        removed = Removed.of({"kems": len(deleted), "rights": len(changed)})
        deletions = (KemDeleted(kem_id=kem_id) for kem_id in deleted)
        return (removed, *deletions, *map(KemUpdated.of, changed))


def principal_of(context: MessageContext) -> Principal:
    """The requester; trusted is the working memory itself, not a requester that acts in its name."""
    envelope = context.envelope
    is_trusted = envelope.requester == f"svc.{_TRUSTED}" and envelope.source.startswith(f"/mb/{_TRUSTED}/")
    return Principal(context.requester, is_trusted=is_trusted)


def _item(outcome: StoredKem | RejectedDraft) -> BatchItem:
    match outcome:
        case StoredKem(row=row, is_new=is_new):
            times = {"created_at": row.created_at, "updated_at": row.updated_at, "version": row.version}
            return BatchItem(kem_id=row.id, status="stored" if is_new else "replaced", **times)
        case RejectedDraft(kem_id=kem_id, rejection=rejection):
            return BatchItem(kem_id=kem_id, status="refused", code=rejection.code, error=str(rejection))

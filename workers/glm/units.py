"""Knowledge units: store, retrieve, update and delete them."""

from collections.abc import Sequence

from bus_schema.glm import (
    BatchItem,
    BatchReport,
    BatchStoreKems,
    DeleteKem,
    KemDeleted,
    KemPage,
    KemStored,
    KemUpdated,
    RetrieveKems,
    StoreKem,
    UpdateKem,
)
from bus_schema.kem import Kem, KemDraft
from memory.glm.notices import notice_of
from memory.glm.rows import as_kem
from memory.glm.store import RejectedDraft, StoredKem
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from workers.glm.current_memory import CurrentMemory
from workers.glm.principal import principal_of
from workers.kem_drafts import DraftReader


class KemHandlers:
    """Handlers of knowledge units (KEMs); vectors follow what is committed with the message."""

    def __init__(self, current: CurrentMemory, drafts: DraftReader) -> None:
        self._current, self._drafts = current, drafts

    @on_command
    async def store(self, command: StoreKem, context: MessageContext) -> tuple[Kem, KemStored]:
        principal = principal_of(context)
        (draft,) = await self._current.memory.backlog.embed_drafts([command.kem])
        kem = as_kem((await self._current.memory.store.store(draft, principal)).row)
        self._current.memory.after_commit()
        return kem, notice_of(kem, KemStored)

    @on_command
    async def store_batch(
        self, command: BatchStoreKems, context: MessageContext
    ) -> tuple[BatchReport | KemStored, ...]:
        drafts: Sequence[KemDraft] = (
            command.kems if command.ref is None else await self._drafts.read(command.ref, context)
        )
        principal = principal_of(context)
        outcomes = await self._current.memory.store.store_all(
            await self._current.memory.backlog.embed_drafts(drafts), principal
        )
        self._current.memory.after_commit()
        # Of two with one id, the later one stands.
        stored = {outcome.row.id: outcome.row for outcome in outcomes if isinstance(outcome, StoredKem)}
        report = BatchReport(items=tuple(map(_item, outcomes)))
        return (report, *(notice_of(as_kem(row, has_vector=False), KemStored) for row in stored.values()))

    @on_command
    async def retrieve(self, query: RetrieveKems, context: MessageContext) -> KemPage:
        principal = principal_of(context)
        return await self._current.memory.search.page(query, principal)

    @on_command
    async def update(self, command: UpdateKem, context: MessageContext) -> tuple[Kem, KemUpdated]:
        principal = principal_of(context)
        changes = await self._current.memory.backlog.embed_changes(command.changes)
        kem = await self._current.memory.store.update(command.model_copy(update={"changes": changes}), principal)
        self._current.memory.after_commit()
        return kem, notice_of(kem, KemUpdated)

    @on_command
    async def delete(self, command: DeleteKem, context: MessageContext) -> KemDeleted:
        principal = principal_of(context)
        await self._current.memory.store.delete(command.kem_id, principal)
        self._current.memory.after_commit()
        return KemDeleted(kem_id=command.kem_id)


def _item(outcome: StoredKem | RejectedDraft) -> BatchItem:
    match outcome:
        case StoredKem(row=row, is_new=is_new):
            times = {"created_at": row.created_at, "updated_at": row.updated_at, "version": row.version}
            return BatchItem(kem_id=row.id, status="stored" if is_new else "replaced", **times)
        case RejectedDraft(kem_id=kem_id, rejection=rejection):
            return BatchItem(kem_id=kem_id, status="refused", code=rejection.code, error=str(rejection))

"""Answers for units: stores them, finds them, changes them, lets them go."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
from memory.glm.service import GlobalMemory
from memory.glm.store import RejectedDraft, StoredKem
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.principal import Principal
from workers.glm.answering import answering
from workers.kem_drafts import DraftReader


class UnitDesk:
    """The part of the global memory that agents talk to."""

    memory: GlobalMemory
    drafts: DraftReader

    @on_command
    async def store(self, command: StoreKem, context: MessageContext) -> tuple[Kem, KemStored]:
        with self.writing(context, command.kem.id) as principal:
            (draft,) = await self.memory.backlog.embed_drafts([command.kem])
            kem = as_kem((await self.memory.store.store(draft, principal)).row)
        return kem, notice_of(kem, KemStored)

    @on_command
    async def store_batch(
        self, command: BatchStoreKems, context: MessageContext
    ) -> tuple[BatchReport | KemStored, ...]:
        drafts: Sequence[KemDraft] = (
            command.kems if command.ref is None else await self.drafts.read(command.ref, context)
        )
        with self.writing(context) as principal:
            outcomes = await self.memory.store.store_all(await self.memory.backlog.embed_drafts(drafts), principal)
        # Of two with one id, the later one stands.
        stored = {outcome.row.id: outcome.row for outcome in outcomes if isinstance(outcome, StoredKem)}
        report = BatchReport(items=tuple(map(_item, outcomes)))
        return (report, *(notice_of(as_kem(row, has_vector=False), KemStored) for row in stored.values()))

    @on_command
    async def retrieve(self, query: RetrieveKems, context: MessageContext) -> KemPage:
        with answering(context) as principal:
            return await self.memory.search.page(query, principal)

    @on_command
    async def update(self, command: UpdateKem, context: MessageContext) -> tuple[Kem, KemUpdated]:
        with self.writing(context, command.kem_id) as principal:
            changes = await self.memory.backlog.embed_changes(command.changes)
            kem = await self.memory.store.update(command.model_copy(update={"changes": changes}), principal)
        return kem, notice_of(kem, KemUpdated)

    @on_command
    async def delete(self, command: DeleteKem, context: MessageContext) -> KemDeleted:
        with self.writing(context, command.kem_id) as principal:
            await self.memory.store.delete(command.kem_id, principal)
        return KemDeleted(kem_id=command.kem_id)

    @contextmanager
    def writing(self, context: MessageContext, kem_id: str | None = None) -> Iterator[Principal]:
        """As `answering`; the vectors follow what is committed with the message."""
        with answering(context, kem_id) as principal:
            yield principal
        self.memory.after_commit()


def _item(outcome: StoredKem | RejectedDraft) -> BatchItem:
    match outcome:
        case StoredKem(row=row, is_new=is_new):
            times = {"created_at": row.created_at, "updated_at": row.updated_at, "version": row.version}
            return BatchItem(kem_id=row.id, status="stored" if is_new else "replaced", **times)
        case RejectedDraft(kem_id=kem_id, rejection=rejection):
            return BatchItem(kem_id=kem_id, status="refused", code=rejection.code, error=str(rejection))

"""SharedKemHandlers of shared memory: publish, query and load them; keep them in step with the global memory."""

import asyncio
from collections.abc import Sequence

from bus_schema.glm import BatchItem, BatchReport, KemDeleted, KemPage, KemStored, KemUpdated
from bus_schema.ids import derived
from bus_schema.kem import Kem, KemDraft
from bus_schema.swm import LoadedKems, LoadKemsFromGlm, PublishKem, PublishKems, QuerySwm
from memory.swm.cache_sync import CacheSync
from memory.swm.glm import GlmAway
from memory.swm.subscriptions import KemEvent, Subscriptions
from memory.swm.working_memory import WorkingMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import background, on_command, on_event
from mindbus.errors import Rejected
from mindbus.logs import logger
from mindbus.principal import Principal
from workers.kem_drafts import DraftReader
from workers.swm.notifications import Notification, notifications_of

_AGAIN_S = 1.0


class SharedKemHandlers:
    """Handlers of units in shared memory, and what keeps them in step with the global memory."""

    def __init__(
        self, memory: WorkingMemory, sync: CacheSync, subscriptions: Subscriptions, drafts: DraftReader
    ) -> None:
        self._memory, self._sync, self._subscriptions, self._drafts = memory, sync, subscriptions, drafts

    @on_command
    async def publish(self, command: PublishKem, context: MessageContext) -> tuple[Kem | Notification, ...]:
        persist = command.persist_to_glm_if_new_or_updated
        principal = Principal(context.requester)
        (outcome,) = await self._memory.publish(_named([command.kem], context), principal, persist=persist)
        if isinstance(outcome, Rejected):
            raise outcome
        assert outcome.kem is not None
        return (outcome.kem, *await notifications_of([outcome], self._subscriptions))

    @on_command
    async def publish_batch(
        self, command: PublishKems, context: MessageContext
    ) -> tuple[BatchReport | Notification, ...]:
        given = command.kems if command.ref is None else await self._drafts.read(command.ref, context)
        drafts = _named(given, context)
        persist = command.persist_to_glm_if_new_or_updated
        principal = Principal(context.requester)
        outcomes = await self._memory.publish(drafts, principal, persist=persist)
        items = (_item(kem_id, outcome) for (kem_id, _), outcome in zip(drafts, outcomes, strict=True))
        happened = [outcome for outcome in outcomes if isinstance(outcome, KemEvent)]
        return (BatchReport(items=tuple(items)), *await notifications_of(happened, self._subscriptions))

    @on_command
    async def query(self, query: QuerySwm, context: MessageContext) -> KemPage:
        principal = Principal(context.requester)
        return await self._memory.query(query.query, principal, query.cursor, query.page_size)

    @on_command
    async def load(self, command: LoadKemsFromGlm, context: MessageContext) -> tuple[LoadedKems | Notification, ...]:
        principal = Principal(context.requester)
        kem_ids, happened = await self._memory.load(command.query, principal, command.limit)
        return (LoadedKems(kem_ids=tuple(kem_ids)), *await notifications_of(happened, self._subscriptions))

    @on_event
    async def on_stored(self, event: KemStored) -> list[Notification]:
        return await self._changed(event, is_new=True)

    @on_event
    async def on_updated(self, event: KemUpdated, context: MessageContext) -> list[Notification]:
        # Its own changes are told under the same name.
        is_own = context.envelope.service == context.consumer
        return [] if is_own else await self._changed(event, is_new=False)

    @on_event
    async def on_deleted(self, event: KemDeleted) -> list[Notification]:
        return await notifications_of(await self._sync.deleted(event.kem_id), self._subscriptions)

    @background(pause_s=0.05)
    async def write_to_glm(self) -> list[Notification]:
        try:
            return await notifications_of(await self._sync.flush(), self._subscriptions)
        except GlmAway as error:
            logger().warning("writes wait for the global memory", reason=str(error))
            await asyncio.sleep(_AGAIN_S)
            return []

    @background(pause_s=0.2)
    async def publish_evictions(self) -> list[Notification]:
        return await notifications_of(await self._sync.evicted(), self._subscriptions)

    async def _changed(self, event: KemStored | KemUpdated, *, is_new: bool) -> list[Notification]:
        happened = await self._sync.changed(event.kem_id, event.version, event.updated_at, is_new=is_new)
        return await notifications_of(happened, self._subscriptions)


def _named(drafts: Sequence[KemDraft], context: MessageContext) -> list[tuple[str, KemDraft]]:
    """A draft without an id gets the same one however often the message comes."""
    return [
        (draft.id or f"kem_{derived(context.message_id, place).replace('-', '')}", draft)
        for place, draft in enumerate(drafts)
    ]


def _item(kem_id: str, outcome: KemEvent | Rejected) -> BatchItem:
    if isinstance(outcome, Rejected):
        return BatchItem(kem_id=kem_id, status="refused", code=outcome.code, error=str(outcome))
    kem = outcome.kem
    assert kem is not None
    status = "stored" if outcome.event_type == "KEM_PUBLISHED" else "replaced"
    times = {"created_at": kem.created_at, "updated_at": kem.updated_at, "version": kem.version}
    return BatchItem.model_validate({"kem_id": kem_id, "status": status, **times})

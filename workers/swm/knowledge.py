"""Answers for units at hand: publishes them, finds them, brings them from the global memory."""

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
from mindbus.bus.handlers import every, on_command, on_event
from mindbus.errors import Rejected, TemporaryFailure
from mindbus.logs import logger
from workers.kem_drafts import DraftReader
from workers.swm.answering import answering
from workers.swm.telling import Telling, told

_AGAIN_S = 1.0


class KnowledgeDesk:
    """The part of the working memory that agents talk to."""

    drafts: DraftReader
    memory: WorkingMemory
    cache_sync: CacheSync
    subscriptions: Subscriptions

    @on_command
    async def publish(self, command: PublishKem, context: MessageContext) -> tuple[Kem | Telling, ...]:
        persist = command.persist_to_glm_if_new_or_updated
        with answering(context) as principal:
            (outcome,) = await self.memory.publish(_named([command.kem], context), principal, persist=persist)
            if isinstance(outcome, Rejected):
                raise outcome
        assert outcome.kem is not None
        return (outcome.kem, *await told([outcome], self.subscriptions))

    @on_command
    async def publish_batch(self, command: PublishKems, context: MessageContext) -> tuple[BatchReport | Telling, ...]:
        given = command.kems if command.ref is None else await self.drafts.read(command.ref, context)
        drafts = _named(given, context)
        persist = command.persist_to_glm_if_new_or_updated
        with answering(context) as principal:
            outcomes = await self.memory.publish(drafts, principal, persist=persist)
        items = (_item(kem_id, outcome) for (kem_id, _), outcome in zip(drafts, outcomes, strict=True))
        happened = [outcome for outcome in outcomes if isinstance(outcome, KemEvent)]
        return (BatchReport(items=tuple(items)), *await told(happened, self.subscriptions))

    @on_command
    async def query(self, query: QuerySwm, context: MessageContext) -> KemPage:
        with answering(context) as principal:
            return await self.memory.query(query.query, principal, query.cursor, query.page_size)

    @on_command
    async def load(self, command: LoadKemsFromGlm, context: MessageContext) -> tuple[LoadedKems | Telling, ...]:
        with answering(context) as principal:
            kem_ids, happened = await self.memory.load(command.query, principal, command.limit)
        return (LoadedKems(kem_ids=tuple(kem_ids)), *await told(happened, self.subscriptions))

    @on_event
    async def hear_of_stored(self, event: KemStored) -> list[Telling]:
        return await self._changed(event, is_new=True)

    @on_event
    async def hear_of_change(self, event: KemUpdated, context: MessageContext) -> list[Telling]:
        # Its own changes are told under the same name.
        is_own = context.envelope.service == context.consumer
        return [] if is_own else await self._changed(event, is_new=False)

    @on_event
    async def hear_of_end(self, event: KemDeleted) -> list[Telling]:
        return await told(await self.cache_sync.deleted(event.kem_id), self.subscriptions)

    @every(seconds=0.05)
    async def carry(self) -> list[Telling]:
        try:
            return await told(await self.cache_sync.flush(), self.subscriptions)
        except GlmAway as away:
            logger().warning("writes wait for the global memory", reason=str(away))
            await asyncio.sleep(_AGAIN_S)
            return []

    @every(seconds=0.2)
    async def tell_of_evicted(self) -> list[Telling]:
        return await told(await self.cache_sync.evicted(), self.subscriptions)

    async def _changed(self, event: KemStored | KemUpdated, *, is_new: bool) -> list[Telling]:
        try:
            happened = await self.cache_sync.changed(event.kem_id, event.version, event.updated_at, is_new=is_new)
        except GlmAway as away:
            raise TemporaryFailure(str(away)) from away
        return await told(happened, self.subscriptions)


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

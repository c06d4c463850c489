"""Units in shared memory: publication, queries, subscriptions, and sync with the global memory."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Sequence
from typing import Any

from bus_schema.glm import (
    MAX_PAGE,
    BatchItem,
    BatchReport,
    BatchStoreKems,
    KemDeleted,
    KemPage,
    KemStored,
    KemUpdated,
    RetrieveKems,
)
from bus_schema.identities import Principal, worker_of
from bus_schema.ids import derived
from bus_schema.kem import Kem, KemDraft, KemNotice
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Command, Event
from bus_schema.replies import Code
from bus_schema.swm import (
    DropKem,
    KemEvicted,
    KemPublished,
    LoadedKems,
    LoadKemsFromGlm,
    PublishKem,
    PublishKems,
    QuerySwm,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from memory.swm.cache_sync import CacheSync
from memory.swm.subscriptions import KemEvent, Subscriptions
from memory.swm.working_memory import GlmAway, WorkingMemory
from mindbus.bus.client import Client, ResultT
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import PublishTo, background, on_command, on_event
from mindbus.bus.permissions import subscription_mark
from mindbus.errors import BusUnavailable, Rejected, ReplyError
from mindbus.logs import logger
from mindbus.sdk.errors import CircuitOpen
from mindbus.sdk.requests import CircuitBreaker
from workers.kem_drafts import DraftReader

Notification = Event | PublishTo
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
        drafts, publisher = _named([command.kem], context), Principal(context.requester)
        (outcome,) = await self._memory.publish(drafts, publisher, context.message_id, persist=persist)
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
        publisher = Principal(context.requester)
        outcomes = await self._memory.publish(drafts, publisher, context.message_id, persist=persist)
        items = (_item(kem_id, outcome) for (kem_id, _), outcome in zip(drafts, outcomes, strict=True))
        events = [outcome for outcome in outcomes if isinstance(outcome, KemEvent)]
        return (BatchReport(items=tuple(items)), *await notifications_of(events, self._subscriptions))

    @on_command
    async def query(self, query: QuerySwm, context: MessageContext) -> KemPage:
        return await self._memory.query(query.query, Principal(context.requester), query.cursor, query.page_size)

    @on_command
    async def load(self, command: LoadKemsFromGlm, context: MessageContext) -> tuple[LoadedKems | Notification, ...]:
        kem_ids, events = await self._memory.load(command.query, Principal(context.requester), command.limit)
        return (LoadedKems(kem_ids=tuple(kem_ids)), *await notifications_of(events, self._subscriptions))

    @on_command
    async def drop(self, command: DropKem, context: MessageContext) -> list[Notification]:
        events = await self._sync.remove(command.kem_id, Principal(context.requester))
        return await notifications_of(events, self._subscriptions)

    @on_event
    async def on_stored(self, event: KemStored) -> list[Notification]:
        """Knowledge that others have stored reaches subscribers as that which is published here does."""
        told = await self._changed(event, is_new=True)
        if told or not self._subscriptions.has_any:
            return told
        events = await self._sync.stored_elsewhere(event.kem_id, event.version)
        return await notifications_of(events, self._subscriptions)

    @on_event
    async def on_updated(self, event: KemUpdated, context: MessageContext) -> list[Notification]:
        # Its own changes are told under the same name.
        is_own = context.envelope.service == context.consumer
        return [] if is_own else await self._changed(event, is_new=False)

    @on_event
    async def on_deleted(self, event: KemDeleted) -> list[Notification]:
        return await notifications_of(await self._sync.apply_deletion(event.kem_id), self._subscriptions)

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
        return await notifications_of(await self._sync.evictions(), self._subscriptions)

    async def _changed(self, event: KemStored | KemUpdated, *, is_new: bool) -> list[Notification]:
        events = await self._sync.apply_change(event.kem_id, event.version, event.updated_at, is_new=is_new)
        return await notifications_of(events, self._subscriptions)


class SubscriptionHandlers:
    """Handlers of subscriptions to changes."""

    def __init__(self, bus: Client, subscriptions: Subscriptions) -> None:
        self._bus, self._subscriptions = bus, subscriptions

    @on_command
    async def subscribe(self, command: Subscribe, context: MessageContext) -> Subscription:
        # Whose it is goes by who asks, so that nobody takes another's name.
        cause = (context.message_id,) if command.name is None else (context.owner, command.name)
        # Its queue may be read by the owner's user alone, so the owner is a part of the name.
        mark = subscription_mark(worker_of(context.owner) or context.owner)
        unique = derived(cause[0], "subscription", *cause[1:]).replace("-", "")
        subscription_id = mark + unique[:20]
        # The queue is first: from the moment that the subscription is known, nothing is missed.
        queue = await self._bus.keep_queue(subscription_id)
        await self._subscriptions.add(subscription_id, command.agent_id, command.topics, Principal(context.requester))
        return Subscription(subscription_id=subscription_id, queue=queue)

    @on_command
    async def unsubscribe(self, command: Unsubscribe, context: MessageContext) -> None:
        await self._subscriptions.remove(command.subscription_id, Principal(context.requester))
        await self._bus.drop_queue(command.subscription_id)


async def notifications_of(events: Iterable[KemEvent], subscriptions: Subscriptions) -> list[Notification]:
    """The event for everybody, unless it has been published, and for each subscriber what it may read."""
    notifications: list[Notification] = []
    for event in events:
        if not event.is_published:
            notifications.append(_notice(event))
        whole = _notice(event, is_whole=True)
        for recipient in await subscriptions.recipients(event):
            notice = KemEvicted(kem_id=event.kem_id) if recipient.is_lost else whole
            notifications.append(PublishTo(notice, recipient.subscription_id))
    return notifications


def _notice(event: KemEvent, *, is_whole: bool = False) -> Event:
    """Event of a change: the public one, or for who may read the unit with all of it."""
    if event.kem is None:
        return (KemDeleted if event.event_type == "KEM_DELETED" else KemEvicted)(kem_id=event.kem_id)
    kind: type[KemNotice] = KemPublished if event.event_type == "KEM_PUBLISHED" else KemUpdated
    notice = kind.of(event.kem)
    return notice.model_copy(update={"metadata": event.kem.metadata, "kem": event.kem}) if is_whole else notice


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


_STORED_WITHIN_S = 10.0
# Whoever reads waits for it, and does without.
_READ_WITHIN_S = 2.0
# A batch that came too late was not refused: an earlier copy of it may be carried out yet, so it keeps its id.
_BATCH_MAY_PASS = (Code.UNAVAILABLE, Code.EXPIRED)


class GlmLink:
    """Fetches in its own name, since its caller checks the rights; queries and stores in the name of the requester."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self._breaker = CircuitBreaker(opens_after=2, counts=GlmAway)

    async def fetch(self, kem_ids: Collection[str]) -> list[Kem]:
        ids = sorted(kem_ids)
        kems: list[Kem] = []
        for first in range(0, len(ids), MAX_PAGE):
            query = RetrieveKems(query=KemQuery(ids=tuple(ids[first : first + MAX_PAGE])), page_size=MAX_PAGE)
            kems += [item.kem for item in (await self._ask(self._bus, query, timeout_s=_READ_WITHIN_S)).items]
        return kems

    async def page(self, query: KemQuery, principal: str, cursor: str | None, page_size: int) -> KemPage:
        retrieval = RetrieveKems(query=query, cursor=cursor, page_size=page_size)
        return await self._ask(self._bus.acting_as(principal), retrieval, timeout_s=_READ_WITHIN_S)

    async def store(self, drafts: Sequence[KemDraft], publisher: str, message_id: str) -> BatchReport:
        """Store a batch; one that is rejected as a whole, or that made the global memory fail, is stored unit by unit.

        After such a failure the batch and the unit that caused it are dead letters; the others are stored.
        """
        batch = BatchStoreKems(kems=tuple(drafts))
        try:
            bus, where = self._bus.acting_as(publisher), {"timeout_s": _STORED_WITHIN_S, "message_id": message_id}
            return await self._ask(bus, batch, passing=_BATCH_MAY_PASS, **where)
        except Rejected as error:
            if len(drafts) == 1:
                item = BatchItem(kem_id=str(drafts[0].id), status="refused", code=error.code, error=str(error))
                return BatchReport(items=(item,))
        reports = [
            await self.store([draft], publisher, derived(message_id, str(draft.id), place))
            for place, draft in enumerate(drafts)
        ]
        return BatchReport(items=tuple(item for report in reports for item in report.items))

    async def _ask(
        self,
        bus: Client,
        command: Command[ResultT],
        passing: Collection[Code] = (*_BATCH_MAY_PASS, Code.INTERNAL),
        **where: Any,
    ) -> ResultT:
        """Raises Rejected, GlmAway; `passing` are the codes of failures that may pass."""
        try:
            with self._breaker.guard():
                return await _answer(bus.request(command, **where), passing)
        except CircuitOpen as error:
            raise GlmAway(str(error)) from error


async def _answer(asked: Awaitable[ResultT], passing: Collection[Code]) -> ResultT:
    try:
        return await asked
    except BusUnavailable as error:
        raise GlmAway(str(error)) from error
    except ReplyError as error:
        if error.code in passing:
            raise GlmAway(str(error)) from error
        raise Rejected(error.code, error.message, error.details) from error

"""Subscriptions to changes of units: matching, rights and recipients (spec 000 §7.2.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue
from sqlalchemy import delete, select

from bus_schema.identities import Principal, owner_of
from bus_schema.kem import Kem
from bus_schema.swm import SubscriptionTopic
from memory.errors import NoSuchSubscription, NotYourSubscription
from memory.swm.tables import KnownKemRow, SubscriptionRow
from mindbus.logs import logger
from mindbus.sdk.kem_filters import (
    EVENT_TYPES,
    EVERYTHING,
    Either,
    Filter,
    FilterSubject,
    MalformedFilter,
    parse_filter,
)
from mindbus.sql.database import Database

_AT_ONCE = 500
KemEventType = Literal["KEM_PUBLISHED", "KEM_UPDATED", "KEM_EVICTED", "KEM_DELETED"]


@dataclass(frozen=True, slots=True)
class KemEvent:
    """Change of a cached unit, without `kem` if it is gone; `is_published` if the global memory has sent the event."""

    event_type: KemEventType
    kem_id: str
    kem: Kem | None = None
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class KnownKem:
    """Unit as its subscribers last saw it; `readers` is None for a public unit."""

    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    readers: frozenset[str] | None = frozenset()

    def is_readable_by(self, owner: str) -> bool:
        return self.readers is None or owner in self.readers


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Agent with the filter of its subscription."""

    subscription_id: str
    owner: str
    filter: Filter

    def matches(self, kem_id: str, kem: KnownKem, *event_types: str) -> bool:
        """True if the filter matches one of these event types of a unit that the agent may read."""
        subjects = (FilterSubject(event_type, kem_id, kem.metadata) for event_type in event_types)
        return kem.is_readable_by(self.owner) and any(map(self.filter.matches, subjects))


@dataclass(frozen=True, slots=True)
class Recipient:
    """Subscription that gets an event; `is_lost` if it may no longer read a unit that it knew."""

    subscription_id: str
    is_lost: bool = False


class Subscriptions:
    """Subscriptions and the units known to subscribers, in the database: of a deleted unit nothing else is left."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._subscribers: dict[str, Subscriber] = {}

    async def open(self) -> None:
        async with self._database.reading() as session:
            rows = (await session.scalars(select(SubscriptionRow))).all()
        for row in rows:
            try:
                self._subscribers[row.subscription_id] = _subscriber(row)
            except MalformedFilter as error:
                # Stored by a release whose filters allowed it; the owner subscribes anew.
                logger().warning("subscription unreadable", subscription_id=row.subscription_id, reason=str(error))

    @property
    def has_any(self) -> bool:
        return bool(self._subscribers)

    async def add(
        self, subscription_id: str, agent_id: str, topics: Sequence[SubscriptionTopic], by: Principal
    ) -> None:
        """Add or replace a subscription. Raises MalformedFilter, NotYourSubscription."""
        if owner_of(agent_id) != by.owner:
            raise NotYourSubscription(agent_id=agent_id)
        filters = [topic.filter_criteria for topic in topics]
        row = SubscriptionRow(subscription_id=subscription_id, agent_id=agent_id, filters=filters)
        subscriber = _subscriber(row)
        async with self._database.transaction() as session:
            await session.merge(row)
        self._subscribers[subscription_id] = subscriber

    async def remove(self, subscription_id: str, by: Principal) -> None:
        """Raises NoSuchSubscription."""
        subscriber = self._subscribers.get(subscription_id)
        if subscriber is None or subscriber.owner != by.owner:
            raise NoSuchSubscription(is_denied=subscriber is not None, subscription_id=subscription_id)
        async with self._database.transaction() as session:
            await session.execute(delete(SubscriptionRow).where(SubscriptionRow.subscription_id == subscription_id))
        del self._subscribers[subscription_id]
        await self._forget_unwatched()

    async def recipients(self, event: KemEvent) -> list[Recipient]:
        """Recipients of an event; records the unit as they know it now."""
        if not self._subscribers:
            return []
        before = await self._read_known(event.kem_id)
        if event.kem is None:
            if event.event_type == "KEM_DELETED" and before is not None:
                await self._forget(event.kem_id)
            previous = before or KnownKem()
            matching = (
                subscriber
                for subscriber in self._subscribers.values()
                if subscriber.matches(event.kem_id, previous, event.event_type)
            )
            return [Recipient(subscriber.subscription_id) for subscriber in matching]
        now = state_known_of(event.kem)
        if any(subscriber.matches(event.kem_id, now, *EVENT_TYPES) for subscriber in self._subscribers.values()):
            await self._record(event.kem_id, now)
        elif before is not None:
            await self._forget(event.kem_id)
        return self._recipients_of_change(event.event_type, event.kem_id, now, before)

    async def clear(self, owner: str | None = None) -> int:
        """Remove the subscriptions of one owner, or all with all known units; returns their number."""
        removed = [subscriber for subscriber in self._subscribers.values() if owner in (None, subscriber.owner)]
        async with self._database.transaction() as session:
            ids = [subscriber.subscription_id for subscriber in removed]
            await session.execute(delete(SubscriptionRow).where(SubscriptionRow.subscription_id.in_(ids)))
            if owner is None:
                await session.execute(delete(KnownKemRow))
        for subscriber in removed:
            del self._subscribers[subscriber.subscription_id]
        await self._forget_unwatched()
        return len(removed)

    async def _forget_unwatched(self) -> None:
        """Remove what is known of units that nobody subscribes to any more."""
        last = ""
        while True:
            rows = select(KnownKemRow).where(KnownKemRow.kem_id > last).order_by(KnownKemRow.kem_id).limit(_AT_ONCE)
            async with self._database.reading() as session:
                known = (await session.scalars(rows)).all()
            if not known:
                return
            last = known[-1].kem_id
            watchers = self._subscribers.values()
            unwatched = [
                row.kem_id
                for row in known
                if not any(each.matches(row.kem_id, _known(row), *EVENT_TYPES) for each in watchers)
            ]
            async with self._database.transaction() as session:
                await session.execute(delete(KnownKemRow).where(KnownKemRow.kem_id.in_(unwatched)))

    def _recipients_of_change(
        self, event_type: str, kem_id: str, now: KnownKem, before: KnownKem | None
    ) -> list[Recipient]:
        """Includes subscribers that knew the unit and no longer match it or may no longer read it."""
        recipients = []
        for subscriber in self._subscribers.values():
            was_recipient = before is not None and subscriber.matches(kem_id, before, event_type)
            if subscriber.matches(kem_id, now, event_type) or (was_recipient and now.is_readable_by(subscriber.owner)):
                recipients.append(Recipient(subscriber.subscription_id))
            elif was_recipient:
                recipients.append(Recipient(subscriber.subscription_id, is_lost=True))
        return recipients

    async def _read_known(self, kem_id: str) -> KnownKem | None:
        async with self._database.reading() as session:
            row = await session.get(KnownKemRow, kem_id)
        return None if row is None else _known(row)

    async def _record(self, kem_id: str, kem: KnownKem) -> None:
        readers = None if kem.readers is None else sorted(kem.readers)
        async with self._database.transaction() as session:
            await session.merge(KnownKemRow(kem_id=kem_id, facts=dict(kem.metadata), readers=readers))

    async def _forget(self, kem_id: str) -> None:
        async with self._database.transaction() as session:
            await session.execute(delete(KnownKemRow).where(KnownKemRow.kem_id == kem_id))


def state_known_of(kem: Kem) -> KnownKem:
    """State of a unit as subscribers know it after an event."""
    readers = None if kem.visibility == "public" else frozenset({kem.owner, *kem.readers, *kem.writers})
    return KnownKem(kem.metadata, readers)


def _known(row: KnownKemRow) -> KnownKem:
    return KnownKem(row.facts, None if row.readers is None else frozenset(row.readers))


def _subscriber(row: SubscriptionRow) -> Subscriber:
    filters = tuple(parse_filter(text) for text in row.filters)
    return Subscriber(row.subscription_id, owner_of(row.agent_id), Either(filters) if filters else EVERYTHING)

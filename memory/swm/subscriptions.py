"""Who hears of what has happened to units (spec 000 §7.2.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue
from sqlalchemy import delete, select

from bus_schema.identities import owner_of
from bus_schema.kem import Kem
from bus_schema.swm import SubscriptionTopic
from memory.filters import EVENT_TYPES, EVERYTHING, Either, Filter, FilterSubject, parse_filter
from memory.swm.errors import NoSuchSubscription, NotYourSubscription
from memory.swm.tables import KnownKemRow, SubscriptionRow
from mindbus.principal import Principal
from mindbus.sql.database import Database

KemEventType = Literal["KEM_PUBLISHED", "KEM_UPDATED", "KEM_EVICTED", "KEM_DELETED"]


@dataclass(frozen=True, slots=True)
class KemEvent:
    """Of one that is gone there is the id alone; `is_told` where the global memory has told everybody already."""

    event_type: KemEventType
    kem_id: str
    kem: Kem | None = None
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class KnownKem:
    """A unit as subscribers know it; `readers` is None where everybody may read it."""

    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    readers: frozenset[str] | None = frozenset()

    def is_for(self, owner: str) -> bool:
        """Whether they may have heard of it."""
        return self.readers is None or owner in self.readers


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An agent that hears of what the filter describes."""

    subscription_id: str
    owner: str
    wanted: Filter

    def wants(self, kem_id: str, told: KnownKem, *event_types: str) -> bool:
        """Whether any of these would be told, of a unit that it may read."""
        changes = (FilterSubject(event_type, kem_id, told.metadata) for event_type in event_types)
        return told.is_for(self.owner) and any(map(self.wanted.matches, changes))


@dataclass(frozen=True, slots=True)
class Recipient:
    """A subscriber is to be told; `is_lost` where it must no longer read what it knew."""

    subscription_id: str
    is_lost: bool = False


class Subscriptions:
    """Kept in the database, together with what subscribers know of units: of one that is gone nothing else is left."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._subscribers: dict[str, Subscriber] = {}

    async def open(self) -> None:
        """Know those that there are."""
        async with self._database.reading() as session:
            rows = (await session.scalars(select(SubscriptionRow))).all()
        self._subscribers = {row.subscription_id: _subscriber(row) for row in rows}

    async def add(
        self, subscription_id: str, agent_id: str, topics: Sequence[SubscriptionTopic], by: Principal
    ) -> None:
        """Twice is as good as once. Raises MalformedFilter, NotYourSubscription."""
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
        known = self._subscribers.get(subscription_id)
        if known is None or known.owner != by.owner:
            raise NoSuchSubscription(is_denied=known is not None, subscription_id=subscription_id)
        async with self._database.transaction() as session:
            await session.execute(delete(SubscriptionRow).where(SubscriptionRow.subscription_id == subscription_id))
        del self._subscribers[subscription_id]

    async def hearings(self, happening: KemEvent) -> list[Recipient]:
        """Who is to be told; what they know of the unit is noted."""
        if not self._subscribers:
            return []
        before = await self._told(happening.kem_id)
        if happening.kem is None:
            found = self._of_one_gone(happening, before or KnownKem())
            if happening.event_type == "KEM_DELETED" and before is not None:
                await self._forget(happening.kem_id)
            return found
        now = known_kem(happening.kem)
        if any(each.wants(happening.kem_id, now, *EVENT_TYPES) for each in self._subscribers.values()):
            await self._note(happening.kem_id, now)
        elif before is not None:
            await self._forget(happening.kem_id)
        return self._of_one_there(happening.event_type, happening.kem_id, now, before)

    async def clear(self, owner: str | None = None) -> int:
        """Drop those of one owner, or all, with what subscribers know; how many there were."""
        gone = [each for each in self._subscribers.values() if owner in (None, each.owner)]
        async with self._database.transaction() as session:
            ids = [each.subscription_id for each in gone]
            await session.execute(delete(SubscriptionRow).where(SubscriptionRow.subscription_id.in_(ids)))
            if owner is None:
                await session.execute(delete(KnownKemRow))
        for each in gone:
            del self._subscribers[each.subscription_id]
        return len(gone)

    def _of_one_gone(self, happening: KemEvent, before: KnownKem) -> list[Recipient]:
        return [
            Recipient(each.subscription_id)
            for each in self._subscribers.values()
            if each.wants(happening.kem_id, before, happening.event_type)
        ]

    def _of_one_there(self, event_type: str, kem_id: str, now: KnownKem, before: KnownKem | None) -> list[Recipient]:
        """Whoever knew it hears of it even if it is no longer what it looks for, or no longer its to read."""
        found = []
        for each in self._subscribers.values():
            knew = before is not None and each.wants(kem_id, before, event_type)
            if each.wants(kem_id, now, event_type) or (knew and now.is_for(each.owner)):
                found.append(Recipient(each.subscription_id))
            elif knew:
                found.append(Recipient(each.subscription_id, is_lost=True))
        return found

    async def _told(self, kem_id: str) -> KnownKem | None:
        async with self._database.reading() as session:
            row = await session.get(KnownKemRow, kem_id)
        if row is None:
            return None
        return KnownKem(row.facts, None if row.readers is None else frozenset(row.readers))

    async def _note(self, kem_id: str, told: KnownKem) -> None:
        readers = None if told.readers is None else sorted(told.readers)
        async with self._database.transaction() as session:
            await session.merge(KnownKemRow(kem_id=kem_id, facts=dict(told.metadata), readers=readers))

    async def _forget(self, kem_id: str) -> None:
        async with self._database.transaction() as session:
            await session.execute(delete(KnownKemRow).where(KnownKemRow.kem_id == kem_id))


def known_kem(kem: Kem) -> KnownKem:
    """What there is to know of a unit that is at hand."""
    readers = None if kem.visibility == "public" else frozenset({kem.owner, *kem.readers, *kem.writers})
    return KnownKem(kem.metadata, readers)


def _subscriber(row: SubscriptionRow) -> Subscriber:
    filters = tuple(parse_filter(text) for text in row.filters)
    return Subscriber(row.subscription_id, owner_of(row.agent_id), Either(filters) if filters else EVERYTHING)

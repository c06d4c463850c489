"""Who hears of what has happened to units (spec 000 §7.2.2)."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from bus_schema.identities import Principal
from bus_schema.kem import Kem
from bus_schema.swm import SubscriptionTopic
from memory.errors import NoSuchSubscription, NotYourSubscription
from memory.swm.subscriptions import KemEvent, Subscriptions
from memory.swm.tables import KnownKemRow
from mindbus.sdk.kem_filters import MalformedFilter
from mindbus.sql.database import Database
from tests.clocks import NOON
from tests.memory_kit import ANNA, CRITIC, RESEARCHER
from tests.postgres import DatabaseOf


@pytest.fixture
async def database(database_of: DatabaseOf) -> AsyncIterator[Database]:
    found = Database(database_of("swm"), "swm")
    yield found
    await found.dispose()


@pytest.fixture
def subscriptions(database: Database) -> Subscriptions:
    return Subscriptions(database)


async def subscribe(subscriptions: Subscriptions, name: str, by: Principal, *filters: str) -> None:
    topics = [SubscriptionTopic(filter_criteria=text) for text in filters]
    await subscriptions.add(f"sub_{name}", by.identity, topics, by)


def a_kem(**fields: object) -> Kem:
    stamp = {"id": "kem_1", "owner": RESEARCHER.owner, "created_at": NOON, "updated_at": NOON, "version": 1}
    return Kem.model_validate({"content": "It is Friday."} | stamp | fields)


def published(**fields: object) -> KemEvent:
    return KemEvent("KEM_PUBLISHED", "kem_1", a_kem(**fields))


def updated(**fields: object) -> KemEvent:
    return KemEvent("KEM_UPDATED", "kem_1", a_kem(**fields))


EVICTED = KemEvent("KEM_EVICTED", "kem_1")
DELETED = KemEvent("KEM_DELETED", "kem_1")


async def heard(subscriptions: Subscriptions, happening: KemEvent) -> list[str]:
    found = await subscriptions.recipients(happening)
    return sorted(each.subscription_id + (" lost" if each.is_lost else "") for each in found)


async def test_a_match_on_any_topic_is_told(subscriptions: Subscriptions) -> None:
    await subscribe(subscriptions, "a", ANNA, "metadata.project_id=alpha", "kem_id=kem_9")
    await subscribe(subscriptions, "b", ANNA, "metadata.project_id=beta")
    await subscribe(subscriptions, "all", CRITIC)

    assert await heard(subscriptions, published(metadata={"project_id": "alpha"})) == ["sub_a", "sub_all"]


async def test_what_has_gone_is_told_to_whoever_knew_it(subscriptions: Subscriptions) -> None:
    await subscribe(subscriptions, "a", ANNA, "metadata.project_id=alpha")
    await subscribe(subscriptions, "b", ANNA, "metadata.project_id=beta")
    await subscriptions.recipients(published(metadata={"project_id": "alpha"}))

    assert await heard(subscriptions, EVICTED) == ["sub_a"]
    assert await heard(subscriptions, DELETED) == ["sub_a"]
    assert await heard(subscriptions, DELETED) == []


async def test_of_private_units_their_readers_alone_hear(subscriptions: Subscriptions) -> None:
    await subscribe(subscriptions, "owner", RESEARCHER)
    await subscribe(subscriptions, "reader", ANNA)
    await subscribe(subscriptions, "other", CRITIC, "kem_id=kem_1")
    rights = {"visibility": "readers", "readers": ["user.anna"]}

    assert await heard(subscriptions, published(**rights)) == ["sub_owner", "sub_reader"]
    assert await heard(subscriptions, updated(**rights)) == ["sub_owner", "sub_reader"]
    assert await heard(subscriptions, EVICTED) == ["sub_owner", "sub_reader"]
    assert await heard(subscriptions, DELETED) == ["sub_owner", "sub_reader"]


async def test_whoever_may_no_longer_read_it_is_told_that_it_is_lost(subscriptions: Subscriptions) -> None:
    await subscribe(subscriptions, "owner", RESEARCHER)
    await subscribe(subscriptions, "reader", ANNA)
    await subscriptions.recipients(published())

    assert await heard(subscriptions, updated(visibility="private")) == ["sub_owner", "sub_reader lost"]
    assert await heard(subscriptions, updated(visibility="private")) == ["sub_owner"]


async def test_a_unit_that_ceases_to_match_is_told_once_more(subscriptions: Subscriptions) -> None:
    await subscribe(subscriptions, "a", ANNA, "metadata.project_id=alpha")
    await subscriptions.recipients(published(metadata={"project_id": "alpha"}))

    assert await heard(subscriptions, updated(metadata={"project_id": "beta"})) == ["sub_a"]
    assert await heard(subscriptions, updated(metadata={"project_id": "beta"})) == []


async def test_kinds_of_event_can_be_chosen(subscriptions: Subscriptions) -> None:
    await subscribe(subscriptions, "ends", ANNA, "metadata.project_id=alpha AND (KEM_EVICTED OR KEM_DELETED)")

    assert await heard(subscriptions, published(metadata={"project_id": "alpha"})) == []
    assert await heard(subscriptions, EVICTED) == ["sub_ends"]


async def test_subscriptions_outlive_their_process(subscriptions: Subscriptions, database: Database) -> None:
    await subscribe(subscriptions, "a", ANNA, "metadata.project_id=alpha")
    await subscriptions.recipients(published(metadata={"project_id": "alpha"}))

    again = Subscriptions(database)
    await again.open()
    assert await heard(again, EVICTED) == ["sub_a"]


async def test_who_has_unsubscribed_hears_nothing(subscriptions: Subscriptions) -> None:
    await subscribe(subscriptions, "a", ANNA)
    with pytest.raises(NoSuchSubscription):
        await subscriptions.remove("sub_a", CRITIC)
    await subscriptions.remove("sub_a", ANNA)

    assert await heard(subscriptions, published()) == []
    with pytest.raises(NoSuchSubscription):
        await subscriptions.remove("sub_a", ANNA)


async def test_what_nobody_subscribes_to_is_forgotten(subscriptions: Subscriptions, database: Database) -> None:
    async def known() -> set[str]:
        async with database.reading() as session:
            return set(await session.scalars(select(KnownKemRow.kem_id)))

    await subscribe(subscriptions, "a", ANNA)
    await subscribe(subscriptions, "c", CRITIC, "metadata.type=fact")
    for number in range(520):
        kind = "fact" if number % 2 else "note"
        kem = a_kem(id=f"kem_{number}", metadata={"type": kind})
        await subscriptions.recipients(KemEvent("KEM_PUBLISHED", kem.id, kem))
    assert len(await known()) == 520

    await subscriptions.remove("sub_a", ANNA)
    assert await known() == {f"kem_{number}" for number in range(1, 520, 2)}
    await subscriptions.clear(CRITIC.owner)
    assert await known() == set()


async def test_nobody_subscribes_for_another(subscriptions: Subscriptions) -> None:
    with pytest.raises(NotYourSubscription):
        await subscriptions.add("sub_a", "user.anna", [], CRITIC)


async def test_a_malformed_filter_is_refused_with_its_place(subscriptions: Subscriptions) -> None:
    with pytest.raises(MalformedFilter) as refused:
        await subscribe(subscriptions, "a", ANNA, "metadata.a=1 AND")

    assert refused.value.position == 17
    assert await heard(subscriptions, published()) == []

"""The working memory as agents meet it: on a real RabbitMQ, before a real global memory."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.redis import PrivateRedis
from bus_schema.envelope import Envelope
from bus_schema.glm import BatchStoreKems, DeleteKem, KemChanges, RetrieveKems, StoreKem, UpdateKem
from bus_schema.ids import mint
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from bus_schema.swm import (
    AcquireLock,
    GetCounter,
    GetLockInfo,
    IncrementCounter,
    LoadKemsFromGlm,
    PublishKem,
    PublishKems,
    QuerySwm,
    ReleaseLock,
    RenewLock,
    Subscribe,
    SubscriptionTopic,
    Unsubscribe,
)
from config.settings import FleetSettings
from mindbus import Client, ReplyError
from mindbus.sdk.agent import AgentSDK
from mindbus.testing.wait import until
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET
from tests.memory_kit import SPACE, a_draft
from tests.redises import private_redis
from workers.swm.worker import SwmWorker


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path, embedding_model=SPACE.model, embedding_dim=SPACE.dim)


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["glm"], FLEET["swm"], settings=settings) as running:
        yield running


@pytest.fixture
def alice(fleet: Fleet) -> Client:
    return fleet.bus.acting_as("agent.alice")


@pytest.fixture
def bob(fleet: Fleet) -> Client:
    return fleet.bus.acting_as("agent.bob")


async def refusal(bus: Client, command: Any) -> Code:
    with pytest.raises(ReplyError) as failure:
        await bus.request(command)
    return failure.value.code


async def at_hand(bus: Client, **query: Any) -> list[str]:
    return [item.kem.id for item in (await bus.request(QuerySwm(query=KemQuery.model_validate(query)))).items]


async def at_hand_if_answered(bus: Client) -> list[str]:
    """Empty where nobody has answered in the 2 s that a reader waits, as on a busy machine."""
    try:
        return await at_hand(bus)
    except ReplyError as error:
        if error.code is Code.UNAVAILABLE:
            return []
        raise


async def in_glm(bus: Client, **query: Any) -> list[str]:
    return [item.kem.id for item in (await bus.request(RetrieveKems(query=KemQuery.model_validate(query)))).items]


async def subscribe(bus: Client, *filters: str) -> str:
    topics = tuple(SubscriptionTopic(filter_criteria=text) for text in filters)
    return (await bus.request(Subscribe(agent_id=bus.owner, topics=topics))).subscription_id


async def next_event(events: AsyncIterator[Envelope]) -> tuple[str, dict[str, Any]]:
    async with asyncio.timeout(60):
        envelope = await anext(events)
    return envelope.type.split(".")[3], dict(envelope.data or {})


async def test_what_one_publishes_another_hears(alice: Client, bob: Client) -> None:
    mine = await subscribe(bob, "metadata.project_id=alpha")
    other = await subscribe(bob, "metadata.project_id=beta")
    async with bob.standing_subscription(mine) as hearing:
        events = aiter(hearing)
        kem = await alice.request(
            PublishKem(kem=a_draft(metadata={"project_id": "alpha"}), persist_to_glm_if_new_or_updated=True)
        )
        name, told = await next_event(events)
        assert (name, told["kem"]["content"], told["version"]) == ("published", kem.content, 1)

        await until(lambda: in_glm(alice, ids=[kem.id]))
        changed = await alice.request(UpdateKem(kem_id=kem.id, changes=KemChanges(content="Saturday.")))
        name, told = await next_event(events)
        assert (name, told["kem"]["content"], told["version"]) == ("updated", "Saturday.", changed.version)
        (found,) = (await bob.request(QuerySwm(query=KemQuery(ids=(kem.id,))))).items
        assert found.kem == changed

        await alice.request(DeleteKem(kem_id=kem.id))
        assert await next_event(events) == ("deleted", {"kem_id": kem.id})
        assert await at_hand(bob) == []
    async with bob.standing_subscription(other) as hearing:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await anext(aiter(hearing))


async def test_what_is_deleted_right_after_it_was_published_stays_deleted(alice: Client) -> None:
    async with AgentSDK(bus=alice) as memory:
        for number in range(20):
            draft = a_draft(id=f"kem_fleeting_{number}")
            await memory.publish_kems_to_swm_batch([draft], persist_to_glm_if_new_or_updated=True)
            await memory.delete_kem(f"kem_fleeting_{number}")
        # Stored after all of them.
        await memory.publish_kems_to_swm_batch([a_draft(id="kem_last")], persist_to_glm_if_new_or_updated=True)
        await until(lambda: in_glm(alice, ids=["kem_last"]))
        # Never to be stored, so at hand alone.
        await memory.publish_kems_to_swm_batch([a_draft(id="kem_shared")])
        await memory.delete_kem("kem_shared")

    ids = [*(f"kem_fleeting_{number}" for number in range(20)), "kem_shared"]
    assert await in_glm(alice, ids=ids) == await at_hand(alice, ids=ids) == []


async def test_what_is_said_of_rights_is_heard_though_it_is_the_default(alice: Client, bob: Client) -> None:
    async with AgentSDK(bus=alice) as memory:
        await memory.store_kems([a_draft(id="kem_1", visibility="private")])
        await memory.store_kems([a_draft(id="kem_1")])
        assert await in_glm(bob, ids=["kem_1"]) == []
        await memory.store_kems([a_draft(id="kem_1", visibility="public")])

    assert await in_glm(bob, ids=["kem_1"]) == ["kem_1"]


async def test_what_has_no_room_is_heard_as_evicted(settings: FleetSettings) -> None:
    small = settings.model_copy(update={"swm_max_bytes": 1024**2})
    async with fleet_of(FLEET["swm"], settings=small) as fleet:
        alice, bob = fleet.bus.acting_as("agent.alice"), fleet.bus.acting_as("agent.bob")
        mine = await subscribe(bob, "metadata.project_id=alpha")
        first = await alice.request(PublishKem(kem=a_draft(metadata={"project_id": "alpha"})))
        async with bob.standing_subscription(mine) as hearing:
            events = aiter(hearing)
            assert (await next_event(events))[0] == "published"
            for _ in range(20):
                await alice.request(PublishKem(kem=a_draft("x" * 60_000)))
            assert await next_event(events) == ("evicted", {"kem_id": first.id})


async def test_what_others_store_reaches_subscribers_once_as_far_as_they_may_read_it(
    alice: Client, bob: Client
) -> None:
    alphas, betas = await subscribe(bob, "metadata.project_id=alpha"), await subscribe(bob, "metadata.project_id=beta")
    async with bob.standing_subscription(alphas) as hearing, bob.standing_subscription(betas) as other:
        heard, not_heard = aiter(hearing), aiter(other)
        hidden = a_draft(metadata={"project_id": "beta"}, visibility="private")
        await alice.request(StoreKem(kem=hidden))
        stored = await alice.request(StoreKem(kem=a_draft(metadata={"project_id": "alpha"}, visibility="public")))
        batch = tuple(
            a_draft(f"Unit {number}.", metadata={"project_id": "alpha"}, visibility="public") for number in range(3)
        )
        await alice.request(BatchStoreKems(kems=batch))
        told = [await next_event(heard) for _ in range(4)]
        assert [name for name, _ in told] == ["published"] * 4
        # Units are fetched each for itself, so that their order is nobody's.
        contents = [each["kem"]["content"] for _, each in told]
        assert sorted(contents) == sorted([str(stored.content), "Unit 0.", "Unit 1.", "Unit 2."])

        await alice.request(DeleteKem(kem_id=stored.id))
        # What is published here is told here, and not once more when it has been stored.
        kem = await alice.request(
            PublishKem(kem=a_draft(metadata={"project_id": "alpha"}), persist_to_glm_if_new_or_updated=True)
        )
        await until(lambda: in_glm(alice, ids=[kem.id]))
        await alice.request(StoreKem(kem=a_draft(metadata={"project_id": "beta"}, visibility="public")))
        both = dict([await next_event(heard), await next_event(heard)])
        assert both["deleted"] == {"kem_id": stored.id}
        assert both["published"]["kem"]["id"] == kem.id
        name, told_of = await next_event(not_heard)
        assert (name, told_of["kem"]["visibility"]) == ("published", "public")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await anext(heard)


async def test_a_subscriber_that_was_away_catches_up_in_order(alice: Client, bob: Client) -> None:
    mine = await subscribe(bob)
    kems = [await alice.request(PublishKem(kem=a_draft(f"fact {number}"))) for number in range(5)]
    async with bob.standing_subscription(mine) as hearing:
        events = aiter(hearing)
        heard = [(await next_event(events))[1]["kem_id"] for _ in kems]
        # Its reader went in the middle of the last one.
    async with bob.standing_subscription(mine) as hearing:
        again = (await next_event(aiter(hearing)))[1]["kem_id"]

    assert heard == [kem.id for kem in kems]
    assert again == kems[-1].id
    await bob.request(Unsubscribe(subscription_id=mine))
    assert await refusal(bob, Unsubscribe(subscription_id=mine)) is Code.NOT_FOUND


async def test_what_is_private_is_nobody_elses_to_hear_or_find(fleet: Fleet, alice: Client, bob: Client) -> None:
    everything = await subscribe(bob)
    async with fleet.bus.subscribe("kem.published") as public, bob.standing_subscription(everything) as hearing:
        told_to_all, told_to_bob = aiter(public), aiter(hearing)
        secret = await alice.request(PublishKem(kem=a_draft("secret", visibility="private", metadata={"k": "v"})))
        shared = await alice.request(PublishKem(kem=a_draft("shared", visibility="readers", readers=["agent.bob"])))

        assert (await next_event(told_to_bob))[1]["kem_id"] == shared.id
        _, told = await next_event(told_to_all)
        assert (told["kem_id"], told["metadata"], told["kem"]) == (secret.id, {}, None)
    assert await at_hand(bob) == [shared.id]
    assert await at_hand(bob, ids=[secret.id]) == []
    assert await refusal(bob, PublishKem(kem=a_draft(id=secret.id))) is Code.CONFLICT
    assert await refusal(bob, Subscribe(agent_id="agent.alice")) is Code.UNAUTHORIZED


async def test_a_batch_is_kept_unit_by_unit(alice: Client, bob: Client) -> None:
    await bob.request(PublishKem(kem=a_draft(id="kem_bob")))
    drafts = (a_draft("a", id="kem_a"), a_draft("b", id="kem_bob"), a_draft("c"))
    report = await alice.request(PublishKems(kems=drafts, persist_to_glm_if_new_or_updated=True))

    assert [item.status for item in report.items] == ["stored", "refused", "stored"]
    assert report.items[1].code is Code.CONFLICT
    kept = [report.items[0].kem_id, report.items[2].kem_id]

    async def is_kept() -> bool:
        return sorted(await in_glm(alice)) == sorted(kept)

    await until(is_kept)


async def test_what_is_loaded_is_at_hand(fleet: Fleet, alice: Client, bob: Client) -> None:
    kem = await alice.request(PublishKem(kem=a_draft(), persist_to_glm_if_new_or_updated=True))
    await until(lambda: in_glm(alice, ids=[kem.id]))
    await fleet.bus.acting_as("user.anna").request(LoadKemsFromGlm(query=KemQuery()))

    assert await at_hand(bob) == [kem.id]


async def test_a_malformed_filter_is_refused_with_its_position(bob: Client) -> None:
    with pytest.raises(ReplyError) as failure:
        await subscribe(bob, "metadata.a=1 OR nonsense=2")
    assert failure.value.code is Code.INVALID
    assert failure.value.details["position"] == 17


async def test_locks_are_taken_in_turn_over_the_bus(alice: Client, bob: Client) -> None:
    lock = await alice.request(AcquireLock(name="report", lease_ms=60_000))
    assert await refusal(bob, AcquireLock(name="report")) is Code.CONFLICT
    waiting = asyncio.create_task(bob.request(AcquireLock(name="report", wait_ms=10_000)))

    async def somebody_waits() -> bool:
        return (await alice.request(GetLockInfo(name="report"))).waiting == 1

    await until(somebody_waits)
    renewed = await alice.request(RenewLock(name="report", token=lock.token, lease_ms=60_000))
    assert renewed.fencing == lock.fencing
    await alice.request(ReleaseLock(name="report", token=lock.token))

    assert (await waiting).fencing == lock.fencing + 1
    info = await alice.request(GetLockInfo(name="report"))
    assert (info.holder or "").startswith("agent.bob.")
    assert await refusal(alice, ReleaseLock(name="report", token=lock.token)) is Code.CONFLICT


@pytest.mark.slow
@pytest.mark.parametrize("many", [1000, pytest.param(10_000, marks=pytest.mark.proof)])
async def test_concurrent_increments_give_exactly_their_number(
    alice: Client, bob: Client, many: int, report: Any
) -> None:
    began = time.monotonic()
    room = asyncio.Semaphore(200)

    async def increment(bus: Client) -> None:
        async with room:
            await bus.request(IncrementCounter(name="drafts", operation_id=mint("op")))

    await asyncio.gather(*(increment((alice, bob)[number % 2]) for number in range(many)))
    report(f"{many} increments over the bus in {time.monotonic() - began:.1f} s")

    assert (await bob.request(GetCounter(name="drafts"))).value == many


@pytest.mark.slow
async def test_without_the_global_memory_units_are_shared_then_kept(settings: FleetSettings) -> None:
    async with fleet_of(FLEET["swm"], settings=settings) as alone:
        alice = alone.bus.acting_as("agent.alice")
        kem = await alice.request(PublishKem(kem=a_draft(), persist_to_glm_if_new_or_updated=True))
        assert await at_hand(alice) == [kem.id]
        assert await refusal(alice, LoadKemsFromGlm(query=KemQuery())) is Code.UNAVAILABLE
    # Nobody has it in memory any more.
    async with fleet_of(FLEET["glm"], FLEET["swm"], settings=settings) as both:
        alice = both.bus.acting_as("agent.alice")
        await until(lambda: in_glm(alice, ids=[kem.id]))
        assert await at_hand(alice) == [kem.id]


async def test_who_leads_again_knows_what_happened_meanwhile(fleet: Fleet, alice: Client) -> None:
    swm = fleet[SwmWorker]
    gone = await alice.request(PublishKem(kem=a_draft("not kept")))
    await alice.request(IncrementCounter(name="drafts", operation_id="op-1"))
    # As the runtime does when another instance has led for a while.
    await swm.start()
    kept = await alice.request(PublishKem(kem=a_draft("kept"), persist_to_glm_if_new_or_updated=True))

    await until(lambda: in_glm(alice, ids=[kept.id]))
    assert await at_hand(alice, ids=[gone.id, kept.id]) == [kept.id]
    assert (await alice.request(IncrementCounter(name="drafts", operation_id="op-2"))).value == 2


@pytest.fixture
async def lock_redis() -> AsyncIterator[PrivateRedis]:
    server = private_redis(keeps=True)
    await server.start()
    yield server
    await server.remove()


@pytest.fixture
async def on_redis(settings: FleetSettings, own_redis: PrivateRedis, lock_redis: PrivateRedis) -> AsyncIterator[Client]:
    """An agent before a working memory that has all it can in Redis."""
    in_redis = settings.model_copy(update={"cache_redis_url": own_redis.url, "redis_url": lock_redis.url})
    async with fleet_of(FLEET["glm"], FLEET["swm"], settings=in_redis) as fleet:
        yield fleet.bus.acting_as("agent.alice")


@pytest.mark.slow
@pytest.mark.parametrize("is_frozen", [False, True], ids=["killed", "frozen"])
async def test_the_cache_may_go_and_come_back(on_redis: Client, own_redis: PrivateRedis, is_frozen: bool) -> None:
    before = await on_redis.request(PublishKem(kem=a_draft("before"), persist_to_glm_if_new_or_updated=True))
    await until(lambda: in_glm(on_redis, ids=[before.id]))

    if is_frozen:
        own_redis.freeze()
    else:
        await own_redis.kill()
    assert await until(lambda: at_hand_if_answered(on_redis)) == [before.id]
    during = await on_redis.request(PublishKem(kem=a_draft("during"), persist_to_glm_if_new_or_updated=True))
    shared = await on_redis.request(PublishKem(kem=a_draft("only shared")))
    await until(lambda: in_glm(on_redis, ids=[during.id]))
    assert sorted(await until(lambda: at_hand_if_answered(on_redis))) == sorted([before.id, during.id])

    if is_frozen:
        own_redis.thaw()
    else:
        await own_redis.start()

    async def all_at_hand() -> bool:
        return sorted(await at_hand_if_answered(on_redis)) == sorted([before.id, during.id, shared.id])

    await until(all_at_hand)


@pytest.mark.slow
async def test_without_their_redis_locks_are_refused_as_unavailable(on_redis: Client, lock_redis: PrivateRedis) -> None:
    held = await on_redis.request(AcquireLock(name="report"))
    await on_redis.request(IncrementCounter(name="drafts", operation_id="op-1"))

    await lock_redis.kill()
    for refused in (AcquireLock(name="report"), IncrementCounter(name="drafts", operation_id="op-2")):
        assert await refusal(on_redis, refused) is Code.UNAVAILABLE
    await lock_redis.start()

    async def fencing() -> int:
        reply = await on_redis.ask(GetLockInfo(name="report"))
        return int((reply.result or {}).get("fencing", 0))

    assert await until(fencing) == held.fencing
    assert (await on_redis.request(GetCounter(name="drafts"))).value == 1
    assert await refusal(on_redis, AcquireLock(name="report")) is Code.CONFLICT

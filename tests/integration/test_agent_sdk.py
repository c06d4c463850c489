"""Agents before shared memory, through the SDK: on a real RabbitMQ, with the real services."""

import asyncio
import secrets
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bus_schema.glm import KemChanges
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus import AgentSDK, ReplyError, SyncAgentSDK
from mindbus.sdk.errors import LockLost, MemoryAway, NotOpen
from mindbus.sdk.requests import RetryPolicy
from mindbus.sdk.swm_events import SwmEvent
from mindbus.tasks import end
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET
from tests.memory_kit import SPACE, a_draft, a_vector
from tests.sdk_kit import Naps

# One fleet for all: what a test says is about a project of its own.
pytestmark = pytest.mark.asyncio(loop_scope="module")

# An agent that is killed before it has finished what it heard first.
SUBSCRIBER = """
import asyncio, sys
from mindbus import AgentSDK

async def main():
    async with AgentSDK("agent.bob") as memory, memory.handle_swm_events(sys.argv[1], name=sys.argv[2]) as events:
        print("listening", flush=True)
        async for event in events:
            print("heard", event.kem_id, flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def settings(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FleetSettings]:
    vhost = f"agent-sdk-{secrets.token_hex(4)}"
    folder = tmp_path_factory.mktemp("agent_sdk")
    tiny = {"embedding_model": SPACE.model, "embedding_dim": SPACE.dim, "swm_max_bytes": 1024**2}
    async with broker.management() as management:
        await management.create_vhost(vhost)
        yield settings_for(broker.url_of(vhost), folder, **tiny)
        await management.delete_vhost(vhost)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["glm"], FLEET["swm"], settings=settings) as running:
        yield running


def sdk(fleet: Fleet, name: str) -> AgentSDK:
    return AgentSDK(bus=fleet.bus.acting_as(f"agent.{name}"), lpa_indexed_keys=["project_id"])


@pytest.fixture
def alice(fleet: Fleet) -> AgentSDK:
    return sdk(fleet, "alice")


@pytest.fixture
def bob(fleet: Fleet) -> AgentSDK:
    return sdk(fleet, "bob")


@pytest.fixture
def project() -> str:
    return f"project-{secrets.token_hex(4)}"


def in_project(project: str, **others: Any) -> KemQuery:
    return KemQuery.model_validate({"metadata_filters": {"project_id": project}} | others)


async def next_of(events: AsyncIterator[SwmEvent]) -> SwmEvent:
    async with asyncio.timeout(60):
        return await anext(events)


async def publish(memory: AgentSDK, project: str, *texts: str, keep: bool = False, **fields: Any) -> list[str]:
    drafts = [a_draft(text, metadata={"project_id": project}, **fields) for text in texts]
    # Longer than the SDK's own limit: a thousand units at once may meet a machine with much else to do.
    report = await memory.publish_kems_to_swm_batch(drafts, persist_to_glm_if_new_or_updated=keep, timeout_s=60)
    return [item.kem_id for item in report.items]


async def test_local_memory_is_as_fresh_as_what_another_does(
    alice: AgentSDK, bob: AgentSDK, project: str, report: Callable[[str], None]
) -> None:
    async with bob.handle_swm_events(f"metadata.project_id={project}") as heard:
        events = aiter(heard)
        began = time.monotonic()
        (kem_id,) = await publish(alice, project, "Friday.", keep=True)
        event = await next_of(events)
        published_s = time.monotonic() - began
        assert (event.event_type, event.kem_id) == ("KEM_PUBLISHED", kem_id)
        assert [kem.content for kem in bob.query_local_memory(in_project(project))] == ["Friday."]

        await until(lambda: alice.get_kem(kem_id, force_remote=True))
        began = time.monotonic()
        changed = await alice.update_kem(kem_id, KemChanges(content="Saturday."))
        event = await next_of(events)
        report(f"heard after {published_s:.3f} s (published), {time.monotonic() - began:.3f} s (updated)")
        assert (event.event_type, event.kem) == ("KEM_UPDATED", changed)
        assert bob.local_memory.get(kem_id) == changed

        await alice.delete_kem(kem_id)
        event = await next_of(events)
        assert (event.event_type, event.kem_id, event.kem) == ("KEM_DELETED", kem_id, None)
        assert bob.local_memory.get(kem_id) is alice.local_memory.get(kem_id) is None


async def test_what_has_no_room_is_heard_as_evicted_yet_still_read(
    alice: AgentSDK, bob: AgentSDK, project: str
) -> None:
    async with bob.handle_swm_events(f"metadata.project_id={project}") as heard:
        events = aiter(heard)
        (kem_id,) = await publish(alice, project, "Friday.", keep=True)
        assert (await next_of(events)).event_type == "KEM_PUBLISHED"
        await until(lambda: alice.get_kem(kem_id, force_remote=True))

        await alice.publish_kems_to_swm_batch([a_draft("x" * 60_000) for _ in range(20)])
        event = await next_of(events)

    assert (event.event_type, event.kem_id, event.kem) == ("KEM_EVICTED", kem_id, None)
    assert bob.local_memory.get(kem_id) is None
    assert await bob.get_kem(kem_id) is not None


async def test_a_thousand_units_published_at_once_are_all_stored_and_heard(
    alice: AgentSDK, bob: AgentSDK, project: str
) -> None:
    async with bob.handle_swm_events(f"metadata.project_id={project}") as heard:
        published = await publish(alice, project, *(f"Unit {number}." for number in range(1000)))
        assert len({*published}) == 1000
        events, unheard = aiter(heard), {*published}
        # Among them is what had no room beside the others.
        while unheard:
            event = await next_of(events)
            if event.event_type == "KEM_PUBLISHED":
                unheard.remove(event.kem_id)


async def test_what_does_not_match_is_not_heard(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    async with bob.handle_swm_events(f"metadata.project_id={project}") as heard:
        await publish(alice, f"{project}-b", "another project")
        await alice.publish_kems_to_swm_batch(
            [a_draft("private", visibility="private", metadata={"project_id": project})]
        )
        (last,) = await publish(alice, project, "the right one")
        event = await next_of(aiter(heard))

    assert event.kem_id == last
    assert [kem.id for kem in bob.query_local_memory()] == [last]


async def a_subscriber_dies(settings: FleetSettings, alice: AgentSDK, project: str) -> str:
    """The id of the unit that it had heard of, without having finished."""
    wanted = f"metadata.project_id={project}"
    subscriber = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SUBSCRIBER, wanted, project, env=settings.environment(), stdout=PIPE, stderr=PIPE
    )
    assert subscriber.stdout is not None
    await _line(subscriber.stdout, "listening")
    (first,) = await publish(alice, project, "first", keep=True)
    assert first in await _line(subscriber.stdout, "heard")
    subscriber.kill()
    await subscriber.communicate()
    return first


@pytest.mark.parametrize("away_s", [0, pytest.param(60, marks=pytest.mark.proof)])
async def test_a_subscriber_that_was_away_catches_up(
    settings: FleetSettings, alice: AgentSDK, project: str, away_s: float
) -> None:
    first = await a_subscriber_dies(settings, alice, project)
    published, began = [first], time.monotonic()
    for second in range(1, max(1, int(away_s)) + 1):
        published += await publish(alice, project, f"fact {second}", f"факт {second}", keep=True)
        await until_past(began + min(away_s, second))
    await until(lambda: alice.get_kem(published[1], force_remote=True))
    await alice.update_kem(published[1], KemChanges(content="changed meanwhile"))
    await alice.delete_kem(first)

    async with (
        AgentSDK("agent.bob", lpa_indexed_keys=["project_id"], settings=settings) as back,
        back.handle_swm_events(f"metadata.project_id={project}", name=project) as events,
    ):
        told = aiter(events)
        # It had not finished the first one.
        heard = [await next_of(told) for _ in range(len(published) + 2)]
    assert [event.kem_id for event in heard[: len(published)]] == published
    last = {(event.event_type, event.kem_id) for event in heard[-2:]}
    assert last == {("KEM_UPDATED", published[1]), ("KEM_DELETED", first)}
    at_hand = {kem.id: kem.content for kem in back.query_local_memory(in_project(project))}
    assert sorted(at_hand) == sorted(published[1:])
    assert at_hand[published[1]] == "changed meanwhile"


async def test_a_unit_is_read_from_the_nearest_place_that_has_it(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    report = await alice.store_kems([a_draft("Kept.", metadata={"project_id": project})])
    (kem_id,) = (item.kem_id for item in report.items)
    assert (await bob.query_swm(in_project(project))).items == ()

    kem = await bob.get_kem(kem_id)
    assert kem is not None
    assert (kem.owner, kem.version) == ("agent.alice", 1)
    assert [item.kem for item in (await bob.query_swm(in_project(project))).items] == [kem]
    assert bob.query_local_memory(in_project(project)) == [kem]

    changed = await alice.update_kem(kem_id, KemChanges(content="Changed."))
    assert await bob.get_kem(kem_id) == kem, "nothing tells it, since it has not subscribed"
    assert await bob.get_kem(kem_id, force_remote=True) == changed
    assert await bob.get_kem(kem_id) == changed


async def test_what_a_run_is_about_is_at_hand_from_its_start(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    drafts = [a_draft(f"fact {number}", metadata={"project_id": project}) for number in range(5)]
    stored = [item.kem_id for item in (await alice.store_kems(drafts)).items]
    await bob.prefetch(in_project(project, order_by="created_at asc"), limit=3)

    assert len(bob.query_local_memory(in_project(project))) == 3
    assert len((await alice.query_swm(in_project(project))).items) == 3
    await bob.prefetch(in_project(project))
    assert sorted(kem.id for kem in bob.query_local_memory(in_project(project))) == sorted(stored)
    again = sdk_of(bob)
    assert len(await again.load_kems_to_lpa_from_swm(in_project(project), limit=4)) == 4
    assert len(again.local_memory) == 4


def sdk_of(other: AgentSDK) -> AgentSDK:
    """The same agent, with nothing at hand."""
    return AgentSDK(bus=other.link.bus)


async def test_the_nearest_to_a_vector_are_found_among_those_that_meet_the_rest(alice: AgentSDK, project: str) -> None:
    metadata = {"project_id": project, "source": "manual"}
    await alice.store_kems(
        [
            a_draft("near", metadata=metadata, embeddings=a_vector(1, 0, 0, 0)),
            a_draft("nearer", metadata=metadata, embeddings=a_vector(0.9, 0.1, 0, 0)),
            a_draft("elsewhere", metadata=metadata | {"source": "web"}, embeddings=a_vector(0.9, 0.1, 0, 0)),
        ]
    )

    async def found() -> list[str | None]:
        page = await alice.retrieve_kems(
            KemQuery(embedding_query=a_vector(0.9, 0.1, 0, 0), metadata_filters=metadata), page_size=10
        )
        return [item.kem.content for item in page.items]

    await until(lambda: _equal(found, ["nearer", "near"]))


async def test_each_unit_of_a_batch_is_answered_for(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    (taken,) = await publish(bob, project, "bob's", keep=True)
    await until(lambda: bob.get_kem(taken, force_remote=True))
    report = await alice.store_kems([a_draft("mine", id=f"kem_{project}"), a_draft("not mine", id=taken)])

    assert [(item.status, item.code) for item in report.items] == [("stored", None), ("refused", Code.CONFLICT)]
    assert [kem.id for kem in alice.query_local_memory()] == [f"kem_{project}"]
    kem = alice.query_local_memory()[0]
    assert (kem.owner, kem.version) == ("agent.alice", 1)


async def test_whoever_was_slower_learns_that_it_knows_too_little(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    report = await alice.store_kems([a_draft("v1", metadata={"project_id": project}, writers=["agent.bob"])])
    kem_id = report.items[0].kem_id
    await bob.get_kem(kem_id)
    await alice.update_kem(kem_id, KemChanges(content="v2"), expected_version=1)

    with pytest.raises(ReplyError) as slower:
        await bob.update_kem(kem_id, KemChanges(content="v2 as well"), expected_version=1)
    assert slower.value.code is Code.CONFLICT
    assert bob.local_memory.get(kem_id) is None
    await alice.delete_kem(kem_id)
    with pytest.raises(ReplyError) as gone:
        await alice.delete_kem(kem_id)
    assert gone.value.code is Code.NOT_FOUND


async def test_what_was_read_before_is_forgotten_when_it_changes(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    """Of these units no subscriber was ever told."""
    drafts = [a_draft(text, metadata={"project_id": project}) for text in ("secret soon", "gone soon", "unchanged")]
    hidden, gone, unchanged = (item.kem_id for item in (await alice.store_kems(drafts)).items)
    async with bob.keep_fresh(f"metadata.project_id={project}"):
        assert len(await bob.prefetch(in_project(project))) == 3
        await alice.update_kem(hidden, KemChanges(visibility="private"))
        await alice.delete_kem(gone)
        await until(lambda: [kem.id for kem in bob.query_local_memory()] == [unchanged])

    assert await bob.get_kem(hidden) is None
    assert [kem.id for kem in await bob.prefetch(in_project(project))] == [unchanged]
    assert await alice.get_kem(hidden) is not None


async def test_a_lock_is_held_as_long_as_the_work_takes(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    async with alice.distributed_lock(project, lease_ms=600) as lock:
        waiting = asyncio.create_task(bob.acquire_distributed_lock(project, wait_ms=20_000))

        async def was_renewed() -> bool:
            info = await bob.get_distributed_lock_info(project)
            assert info.fencing == lock.fencing
            return info.waiting == 1 and info.expires is not None and info.expires > lock.expires

        await until(was_renewed)
    following = await waiting
    assert following.fencing == lock.fencing + 1
    with pytest.raises(ReplyError) as taken:
        async with alice.distributed_lock(project):
            pytest.fail("both hold it")
    assert taken.value.code is Code.CONFLICT
    await bob.release_distributed_lock(project, following.token)


async def test_work_without_its_lock_is_cut_short(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    async def work_on_without() -> None:
        async with alice.distributed_lock(project, lease_ms=600) as lock:
            await bob.release_distributed_lock(project, lock.token)
            await asyncio.Event().wait()

    with pytest.raises(LockLost):
        await work_on_without()
    with pytest.raises(ZeroDivisionError):
        async with bob.distributed_lock(project):
            raise ZeroDivisionError
    assert (await bob.get_distributed_lock_info(project)).holder is None


async def test_whoever_waits_no_longer_keeps_nobody_waiting(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    async with alice.distributed_lock(project):
        impatient = asyncio.create_task(bob.acquire_distributed_lock(project, wait_ms=60_000, lease_ms=60_000))

        async def waits() -> bool:
            return (await alice.get_distributed_lock_info(project)).waiting == 1

        await until(waits)
        await end(impatient)

    async with alice.distributed_lock(project, wait_ms=5_000) as lock:
        assert lock.fencing == 3


async def test_an_operation_counts_once(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    await asyncio.gather(*(alice.increment_distributed_counter(project, operation_id="op-1") for _ in range(5)))
    await asyncio.gather(*(bob.increment_distributed_counter(project, 2) for _ in range(5)))

    assert await alice.get_distributed_counter(project) == 11


async def test_whoever_gives_up_listening_can_go_on(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    events = bob.handle_swm_events(f"metadata.project_id={project}")
    async with events:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(events)
        first, second = await publish(alice, project, "first", "second")
        async for event in events:
            assert event.kem_id == first
            break
        async for event in events:
            assert event.kem_id == second
            break
    with pytest.raises(NotOpen):
        await anext(events)


async def test_a_name_is_the_agents_own_its_filters_are_the_last(alice: AgentSDK, bob: AgentSDK, project: str) -> None:
    async with (
        alice.handle_swm_events(f"metadata.project_id={project}", name="mine") as hers,
        bob.handle_swm_events("metadata.project_id=other", name="mine") as his,
    ):
        assert hers.subscription_id != his.subscription_id
    async with bob.handle_swm_events(f"metadata.project_id={project}", name="mine") as again:
        assert again.subscription_id == his.subscription_id
        (kem_id,) = await publish(alice, project, "now his as well")
        assert (await next_of(aiter(again))).kem_id == kem_id
    async with bob.handle_swm_events() as unnamed, bob.handle_swm_events() as another:
        assert unnamed.subscription_id != another.subscription_id


async def test_a_named_subscription_that_was_ended_has_missed_what_came_after(
    alice: AgentSDK, bob: AgentSDK, project: str
) -> None:
    criterion = f"metadata.project_id={project}"
    async with bob.handle_swm_events(criterion, name="mine"):
        pass
    await publish(alice, project, "while it waits")
    await bob.end_subscription("mine")
    # One that there is not ends as well.
    await bob.end_subscription("mine")
    await publish(alice, project, "after its end")

    async with bob.handle_swm_events(criterion, name="mine") as events:
        (kem_id,) = await publish(alice, project, "from now on")
        assert (await next_of(aiter(events))).kem_id == kem_id


async def test_a_malformed_filter_is_refused_with_its_position(bob: AgentSDK) -> None:
    with pytest.raises(ReplyError) as refused:
        async with bob.handle_swm_events("metadata.a=1 OR nonsense=2"):
            pytest.fail("it was taken")
    assert refused.value.details["position"] == 17


async def test_a_program_without_asyncio_does_the_same(settings: FleetSettings, bob: AgentSDK, project: str) -> None:
    def work(memory: SyncAgentSDK) -> None:
        assert memory.get_distributed_counter(project) == 0
        with memory.handle_swm_events(f"metadata.project_id={project}") as events:
            (item,) = memory.publish_kems_to_swm_batch([a_draft(metadata={"project_id": project})]).items
            assert next(events).kem_id == item.kem_id
        assert [kem.id for kem in memory.query_local_memory(in_project(project))] == [item.kem_id]
        with memory.distributed_lock(project), pytest.raises(ReplyError), memory.distributed_lock(project):
            pytest.fail("it holds it twice")
        with pytest.raises(LockLost):
            lose_a_lock(memory)

    def lose_a_lock(memory: SyncAgentSDK) -> None:
        with memory.distributed_lock(project) as lock:
            memory.release_distributed_lock(project, lock.token)
            memory.acquire_distributed_lock(project, lease_ms=100)

    def program() -> None:
        with SyncAgentSDK("agent.plain", settings=settings) as memory:
            work(memory)
        with pytest.raises(NotOpen):
            memory.get_distributed_counter(project)

    await asyncio.to_thread(program)
    await bob.release_distributed_lock(project, (await bob.acquire_distributed_lock(project, wait_ms=5_000)).token)


async def test_without_the_working_memory_units_are_read_all_the_same(vhost_url: str, tmp_path: Path) -> None:
    alone = settings_for(vhost_url, tmp_path, embedding_model=SPACE.model, embedding_dim=SPACE.dim)
    async with fleet_of(FLEET["glm"], settings=alone) as fleet:
        memory = AgentSDK(bus=fleet.bus, retry_policy=RetryPolicy(sleep=Naps()))
        stored = (await memory.store_kems([a_draft("Kept.")])).items[0].kem_id
        memory.local_memory.clear()

        assert (await memory.get_kem(stored)) is not None
        memory.local_memory.clear()
        assert [kem.id for kem in await memory.prefetch(KemQuery())] == [stored]
        with pytest.raises(MemoryAway):
            await memory.query_swm(KemQuery())
        with pytest.raises(MemoryAway):
            await memory.acquire_distributed_lock("report")


async def until_past(moment: float) -> None:
    await until(lambda: time.monotonic() >= moment)


async def _line(output: asyncio.StreamReader, beginning: str) -> str:
    async with asyncio.timeout(60):
        while not (line := (await output.readline()).decode()).startswith(beginning):
            assert line, "it has ended"
    return line


async def _equal(found: Any, wanted: object) -> bool:
    return bool(await found() == wanted)

"""The one policy for when storage is away."""

import asyncio

from bus_schema.artifacts import AIContext
from mindbus.testing.wait import until
from tests.sdk_kit import TRACE, Bench, PartingStorage


async def test_storage_away_means_three_tries_with_growing_jitter_then_the_buffer(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        put = await artifacts.put(b"text", artifact_type="draft", trace=TRACE)

        assert put.is_pending
        assert bench.waiting() == [put.ref.artifact_id]
    assert bench.storage.asked == [put.ref.artifact_id] * 3
    first, second = bench.naps.taken_s
    assert 0 <= first <= 0.5
    assert 0 <= second <= 1.0


async def test_registration_resumes_when_storage_is_heard_of(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        put = await artifacts.put(b"text", artifact_type="draft", trace=TRACE)
        bench.storage.is_away = False

        await until(lambda: _after_a_beat(bench))

    assert put.ref.artifact_id in bench.storage.manifests
    assert bench.leftovers() == []


async def test_what_waits_is_registered_at_the_next_start(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        put = await artifacts.put(b"text", artifact_type="draft", trace=TRACE)
    bench.storage.is_away = False

    async with bench.artifacts():
        await until(lambda: put.ref.artifact_id in bench.storage.manifests)
        await until(lambda: not bench.waiting())


async def test_an_answer_that_got_lost_costs_nothing(bench: Bench) -> None:
    bench.storage = PartingStorage(bench.files)
    async with bench.artifacts() as artifacts:
        put = await artifacts.put(b"text", artifact_type="draft", trace=TRACE)
    assert put.is_pending
    parted, bench.storage = bench.storage, type(bench.storage).__bases__[0](bench.files)
    bench.storage.manifests = parted.manifests

    async with bench.artifacts():
        await until(lambda: not bench.waiting())

    assert bench.set_aside() == []


async def test_versions_are_registered_in_their_order(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        first = await artifacts.put(b"one", artifact_type="draft", trace=TRACE, artifact_id="art_z")
        second = await artifacts.put(b"two", artifact_type="draft", trace=TRACE, supersedes=first.ref)
        made_of = AIContext(input_artifacts=(second.ref.artifact_id,))
        bench.storage.is_away = False
        third = await artifacts.put(b"review", artifact_type="critique", trace=TRACE, context=made_of)
        assert third.is_pending, "what it was made of is not there yet"
        bench.storage.asked.clear()

        await until(lambda: _after_a_beat(bench))

    assert bench.storage.asked == [put.ref.artifact_id for put in (first, second, third)]


async def test_one_on_which_storage_chokes_does_not_hold_up_the_others(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        for number in range(5):
            await artifacts.put(b"text", artifact_type="draft", trace=TRACE, artifact_id=f"art_{number}")
        bench.storage.is_away = False
        bench.storage.stumbles_over.add("art_0")
        bench.storage.refuses.add("art_1")

        await until(lambda: _after_a_beat(bench))

    assert sorted(bench.storage.manifests) == ["art_2", "art_3", "art_4"]
    assert bench.set_aside() == ["art_0", "art_1"]


async def test_an_error_that_nobody_foresaw_holds_up_no_other_and_ends_no_drain(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        for number in range(3):
            await artifacts.put(b"text", artifact_type="draft", trace=TRACE, artifact_id=f"art_{number}")
        bench.storage.breaks_over.add("art_0")
        bench.storage.is_away = False
        await until(lambda: _after_a_beat(bench, lambda: bench.waiting() == ["art_0"]))

        bench.storage.breaks_over.clear()
        await until(lambda: _after_a_beat(bench))

    assert sorted(bench.storage.manifests) == ["art_0", "art_1", "art_2"]


async def test_a_drain_is_spread_over_time(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        await artifacts.put(b"text", artifact_type="draft", trace=TRACE)
        bench.naps.taken_s.clear()
        await until(lambda: _after_a_beat(bench, lambda: bench.naps.taken_s))

    assert 0 <= bench.naps.taken_s[0] <= 1.0


async def test_an_agent_that_waits_for_room_goes_on_once_there_is_some(bench: Bench) -> None:
    bench.storage.is_away = True
    bench.limits = type(bench.limits)(max_artifacts=1)
    async with bench.artifacts() as artifacts:
        await artifacts.put(b"text", artifact_type="draft", trace=TRACE)
        waiting = asyncio.create_task(artifacts.wait_for_room())
        assert not waiting.done()
        bench.storage.is_away = False

        await until(lambda: _after_a_beat(bench, waiting.done))
        await waiting


async def _after_a_beat(bench: Bench, condition: object = None) -> object:
    """A heartbeat may be told before anybody listens, as well as during a round: it is repeated, as in life."""
    await bench.beat()
    return condition() if callable(condition) else not bench.waiting()

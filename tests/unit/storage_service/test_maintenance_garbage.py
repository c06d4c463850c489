"""What nothing needs any more goes to the orphans for seven days, then for good; what may be needed stays."""

import asyncio
from datetime import timedelta

import pytest

from bus_schema.replies import Code
from bus_schema.storage_maintenance import ArtifactOrphaned
from mindbus.errors import Rejected
from mindbus.testing import run_task
from mindbus.testing.wait import until
from storage_service.maintenance.manifest_copies import ManifestCopy, copy_key
from storage_service.maintenance.registry import Removal
from storage_service.maintenance.survey import MaintenanceRules
from storage_service.tables import DELETING, GONE, LIVE, ManifestRow
from tests.maintenance_kit import CONTENT, Keeper, counts
from tests.storage_kit import CRITIC, Depot, OpenDepot


@pytest.fixture
def keeper(depot: Depot) -> Keeper:
    return Keeper(depot)


async def drop_manifests(keeper: Keeper) -> None:
    """Have artifacts expire without waiting for it."""
    for artifact_id in await keeper.artifacts():
        async with keeper.depot.database.transaction() as session:
            (await session.get_one(ManifestRow, artifact_id)).expired_at = keeper.depot.clock()


async def test_where_everything_is_needed_nothing_goes(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    await keeper.depot.worker.maintenance.clean()
    before = await keeper.keys("objects/sha256")

    keeper.depot.clock.advance(days=400)

    assert counts(await keeper.collect(dry_run=True)) == {}
    assert counts(await keeper.collect()) == {}
    assert await keeper.keys("objects/sha256") == before
    assert (await keeper.audit()).missing == ()


async def test_an_upload_that_was_never_registered_is_orphaned_after_a_day(keeper: Keeper) -> None:
    upload = keeper.depot.stage(CONTENT).removeprefix(f"{keeper.depot.files.url}/")

    assert counts(await keeper.orphaned_after(hours=23)) == {}
    report = await keeper.orphaned_after(hours=2)

    assert counts(report) == {"unregistered": 1}
    assert report.unregistered.size_bytes == len(CONTENT)
    assert [(example.key, example.reason) for example in report.unregistered.examples] == [(upload, "unregistered")]
    assert await keeper.keys("staging") == []
    assert await keeper.keys("orphans") == [f"orphans/{keeper.today()}/{upload}"]


async def test_an_orphan_is_deleted_after_seven_days(keeper: Keeper) -> None:
    keeper.depot.stage(CONTENT)
    await keeper.orphaned_after(hours=25)

    assert counts(await keeper.orphaned_after(days=7)) == {}
    report = await keeper.orphaned_after(days=1)

    assert counts(report) == {"deleted": 1}
    assert await keeper.keys("orphans") == []


async def test_what_an_orphan_was_is_told_once(keeper: Keeper) -> None:
    upload = keeper.depot.stage(CONTENT).removeprefix(f"{keeper.depot.files.url}/")
    await keeper.orphaned_after(hours=25)

    orphan = f"orphans/{keeper.today()}/{upload}"
    expected = ArtifactOrphaned(key=upload, orphan_key=orphan, size_bytes=len(CONTENT), reason="unregistered")
    assert await keeper.told() == [expected]
    assert await keeper.told() == []


async def test_an_upload_whose_artifact_is_committed_is_left_to_the_cleaning(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)

    assert counts(await keeper.orphaned_after(hours=25)) == {}
    await keeper.depot.worker.maintenance.clean()

    assert await keeper.keys("staging") == []
    assert await keeper.keys("orphans") == []


async def test_a_content_without_an_artifact_is_orphaned_a_day_after_its_pin(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    await keeper.depot.worker.maintenance.clean()
    (key,) = await keeper.keys("objects/sha256")
    await drop_manifests(keeper)

    assert counts(await keeper.orphaned_after(hours=24)) == {}
    report = await keeper.orphaned_after(hours=2)

    assert counts(report) == {"unused": 1}
    assert report.unused.size_bytes == len(CONTENT)
    assert await keeper.keys("objects/sha256") == []
    assert await keeper.keys("orphans") == [f"orphans/{keeper.today()}/{key}"]
    assert (await keeper.stats()).by_state.keys() == {GONE}


async def test_a_content_that_another_artifact_has_stays(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    await drop_manifests(keeper)
    mine = await keeper.depot.put(CONTENT)

    assert counts(await keeper.orphaned_after(days=30)) == {}
    assert keeper.depot.content_of(await keeper.depot.get(mine)) == CONTENT


async def test_a_content_comes_back_under_a_new_generation(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    await keeper.depot.worker.maintenance.clean()
    await drop_manifests(keeper)
    await keeper.orphaned_after(hours=26)

    manifest = await keeper.depot.get(await keeper.depot.put(CONTENT))

    assert manifest.uri.endswith("/2")
    assert keeper.depot.content_of(manifest) == CONTENT
    assert counts(await keeper.orphaned_after(days=2)) == {}


async def test_an_object_that_the_database_does_not_know_is_orphaned_after_a_day(keeper: Keeper) -> None:
    key = await keeper.put_object(CONTENT)

    assert counts(await keeper.orphaned_after(hours=23)) == {}
    assert counts(await keeper.orphaned_after(hours=2)) == {"unknown": 1}

    assert await keeper.keys("objects/sha256") == []
    assert await keeper.keys("orphans") == [f"orphans/{keeper.today()}/{key}"]


async def test_the_generation_of_an_unknown_object_is_never_given_out(keeper: Keeper) -> None:
    await keeper.put_object(CONTENT, generation=3)
    await keeper.orphaned_after(hours=25)

    manifest = await keeper.depot.get(await keeper.depot.put(CONTENT))

    assert manifest.uri.endswith("/4")


async def test_an_older_generation_that_nothing_refers_to_is_orphaned(keeper: Keeper) -> None:
    manifest = await keeper.depot.get(await keeper.depot.put(CONTENT))
    await keeper.depot.worker.maintenance.clean()
    place = keeper.depot.place_of(manifest)
    await keeper.set_blob(CONTENT, generation=2, state=GONE)
    again = await keeper.depot.get(await keeper.depot.put(CONTENT))
    assert again.uri != manifest.uri

    # The first one still has an artifact.
    assert counts(await keeper.orphaned_after(hours=25)) == {}
    await keeper.depot.worker.maintenance.clean()
    async with keeper.depot.database.transaction() as session:
        (await session.get_one(ManifestRow, manifest.id)).expired_at = keeper.depot.clock()

    report = await keeper.orphaned_after(hours=1)
    assert [(example.key, example.reason) for example in report.unknown.examples] == [(place, "outdated")]
    assert keeper.depot.content_of(await keeper.depot.get(again.id)) == CONTENT


async def test_a_generation_from_the_future_of_a_content_in_use_waits(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    key = await keeper.put_object(CONTENT, generation=2)

    assert counts(await keeper.orphaned_after(days=3)) == {}
    assert key in await keeper.keys("objects/sha256")


@pytest.mark.parametrize("name", ["objects/sha256/notes.txt", "objects/sha256/aa/bb/" + "c" * 64 + "/1"])
async def test_what_is_no_content_is_orphaned_from_among_the_objects(keeper: Keeper, name: str) -> None:
    await keeper.depot.storage.blobs.write(name, b"odd")

    assert counts(await keeper.orphaned_after(hours=25)) == {"unknown": 1}
    assert await keeper.keys("orphans") == [f"orphans/{keeper.today()}/{name}"]


async def test_claims_go_after_thirty_days(keeper: Keeper) -> None:
    day = f"{keeper.depot.clock():%Y/%m/%d}"
    await keeper.depot.storage.blobs.write(f"claims/{day}/{'a' * 64}", b"large")

    assert counts(await keeper.orphaned_after(days=30)) == {}
    assert counts(await keeper.orphaned_after(days=1)) == {"claims": 1}
    assert await keeper.keys("claims") == []


async def test_a_dry_run_says_the_same_but_does_nothing(keeper: Keeper) -> None:
    await keeper.depot.put(b"made", retention="1d")
    await keeper.depot.worker.maintenance.clean()
    await keeper.put_object(b"unknown")
    keeper.depot.stage(b"unregistered")
    keeper.depot.clock.advance(days=2)
    before = [await keeper.keys(folder) for folder in ("objects", "staging", "orphans", "manifests")]

    seen = await keeper.collect(dry_run=True)

    assert [await keeper.keys(folder) for folder in ("objects", "staging", "orphans", "manifests")] == before
    assert await keeper.told() == []
    done = await keeper.collect()
    assert counts(done) == {"expired": 1, "unused": 1, "unknown": 1, "unregistered": 1}
    assert done.model_copy(update={"dry_run": True, "temporary": 0}) == seen


async def test_a_second_run_finds_nothing_left(keeper: Keeper) -> None:
    await keeper.depot.put(b"made", retention="1d")
    keeper.depot.stage(b"unregistered")
    await keeper.depot.worker.maintenance.clean()

    assert (await keeper.orphaned_after(days=3)).is_complete
    assert counts(await keeper.collect()) == {}


async def test_an_agent_may_not_collect_nor_look(keeper: Keeper) -> None:
    for what in ("collect_garbage", "audit", "rebuild", "stats"):
        command = next(c for c in keeper.depot.worker.routes.commands if c.wire.type == f"mb.cmd.storage.{what}.v1")
        with pytest.raises(Rejected) as no:
            await keeper.depot.handle(command(), CRITIC)  # type: ignore[arg-type]  # a command, as just found
        assert no.value.code is Code.UNAUTHORIZED


async def test_no_service_may_collect(keeper: Keeper) -> None:
    with pytest.raises(Rejected) as refused:
        await keeper.collect(by="svc.orchestrator")

    assert refused.value.code is Code.UNAUTHORIZED


async def test_a_run_that_would_take_too_much_is_refused_with_the_numbers(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=MaintenanceRules(max_objects=2)))
    for number in range(3):
        keeper.depot.stage(b"%d" % number)
    keeper.depot.clock.advance(hours=25)

    no = await keeper.refusal()

    assert no.code is Code.CONFLICT
    assert no.details["taken"] == no.details["unregistered"] == 3
    assert no.details["max_objects"] == 2
    assert len(await keeper.keys("staging")) == 3
    seen = await keeper.collect(dry_run=True)
    assert counts(seen) == {"unregistered": 3}
    assert seen.refusal == str(no)


async def test_whoever_names_the_number_may_take_as_much(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=MaintenanceRules(max_objects=2)))
    for number in range(3):
        keeper.depot.stage(b"%d" % number)
    keeper.depot.clock.advance(hours=25)

    assert (await keeper.refusal(max_objects=2)).details["taken"] == 3
    assert counts(await keeper.collect(max_objects=3)) == {"unregistered": 3}


async def test_a_run_that_would_take_too_large_a_share_is_refused(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=MaintenanceRules(max_percent=50, few=1, retention={"draft": timedelta(days=1)})))
    for number in range(3):
        await keeper.depot.put(b"%d" % number, artifact_type="draft" if number else "final")
    keeper.depot.clock.advance(days=2)

    no = await keeper.refusal()

    assert no.details["percent"] == pytest.approx(66.7)
    assert len(await keeper.artifacts()) == 3


async def test_a_restored_database_that_forgot_artifacts_takes_nothing(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot())
    await keeper.depot.put(b"one")
    await keeper.depot.worker.maintenance.clean()
    manifest = keeper.depot.manifest(b"two")
    await keeper.put_object(b"two")
    copied = ManifestCopy(manifest=manifest, logical_id=manifest.id, generation=1, committed_at=keeper.depot.clock())
    await keeper.depot.storage.blobs.write(copy_key(manifest.id), copied.to_bytes())
    keeper.depot.clock.advance(days=2)

    no = await keeper.refusal()

    assert no.code is Code.CONFLICT
    assert no.details["forgotten"] == 1
    assert "rebuild" in str(no)
    assert len(await keeper.keys("objects/sha256")) == 2


async def test_a_registration_between_the_look_and_the_decision_keeps_its_bytes(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    await drop_manifests(keeper)
    keeper.depot.clock.advance(days=2)
    care = keeper.depot.storage.maintenance.registry
    before = keeper.depot.clock() - timedelta(hours=24)
    (unused,) = await care.unused_contents(before, "", 10)
    mine = await keeper.depot.put(CONTENT)

    removal = Removal(unused.content.key, "orphans/x/y", "unused", 1, unused.content)
    assert not await care.retire(removal, before)
    assert keeper.depot.content_of(await keeper.depot.get(mine)) == CONTENT


async def test_a_registration_while_its_bytes_are_on_their_way_out_gets_a_new_generation(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    await drop_manifests(keeper)
    keeper.depot.clock.advance(days=2)
    await keeper.set_blob(CONTENT, state=DELETING, condemned_at=keeper.depot.clock())

    manifest = await keeper.depot.get(await keeper.depot.put(CONTENT))

    assert manifest.uri.endswith("/2")
    await keeper.collect()
    assert keeper.depot.content_of(manifest) == CONTENT
    assert (await keeper.stats()).by_state.keys() == {LIVE}


async def test_commands_and_the_clockwork_take_turns(keeper: Keeper) -> None:
    keeper.depot.stage(CONTENT)
    keeper.depot.clock.advance(hours=25)

    reports = await asyncio.gather(*(keeper.collect() for _ in range(4)))

    assert sorted(counts(report).get("unregistered", 0) for report in reports) == [0, 0, 0, 1]


async def test_nothing_is_moved_while_manifests_are_copied(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT)
    await drop_manifests(keeper)
    keeper.depot.clock.advance(days=2)

    async def is_decided() -> bool:
        return DELETING in (await keeper.stats()).by_state

    async with keeper.depot.storage.maintenance.copying:
        collecting = asyncio.create_task(keeper.collect())
        await until(is_decided)
        await asyncio.wait([collecting], timeout=0.1)
        assert await is_decided()
    await collecting

    assert not await is_decided()


async def tend(keeper: Keeper) -> None:
    await run_task(keeper.depot.worker, "maintain")


async def test_storage_collects_by_itself_but_not_right_after_its_start(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=MaintenanceRules(interval=timedelta(days=1))))
    keeper.depot.stage(CONTENT)
    keeper.depot.clock.advance(hours=25)

    await tend(keeper)
    assert len(await keeper.keys("staging")) == 1

    keeper.depot.clock.advance(minutes=20)
    await tend(keeper)
    assert await keeper.keys("staging") == []
    assert (await keeper.stats()).collected_at == keeper.depot.clock()


async def test_a_run_that_storage_refuses_itself_is_tried_again_an_interval_later(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=MaintenanceRules(max_objects=0, interval=timedelta(hours=2))))
    keeper.depot.stage(CONTENT)
    keeper.depot.clock.advance(hours=25)
    await tend(keeper)
    keeper.depot.clock.advance(minutes=20)

    await tend(keeper)
    assert len(await keeper.keys("staging")) == 1

    keeper.depot.storage.maintenance.rules = MaintenanceRules(interval=timedelta(hours=2))
    await tend(keeper)
    assert len(await keeper.keys("staging")) == 1
    keeper.depot.clock.advance(hours=3)
    await tend(keeper)
    assert await keeper.keys("staging") == []


async def test_without_an_interval_nothing_happens_by_itself(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=MaintenanceRules(interval=None, audit_within=None)))
    keeper.depot.stage(CONTENT)
    await tend(keeper)
    keeper.depot.clock.advance(days=30)
    await tend(keeper)

    assert len(await keeper.keys("staging")) == 1

"""The audit reads every artifact anew, puts back what it finds, never removes a row."""

from datetime import timedelta

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.replies import Code
from mindbus.errors import Rejected
from mindbus.testing import run_task
from storage_service.maintenance.manifest_copies import ManifestCopy, copy_key, orphan_key
from storage_service.maintenance.survey import MaintenanceRules
from tests.maintenance_kit import CONTENT, Keeper
from tests.storage_kit import Depot, OpenDepot


@pytest.fixture
def keeper(depot: Depot) -> Keeper:
    return Keeper(depot)


async def put(keeper: Keeper, content: bytes = CONTENT) -> Manifest:
    manifest = await keeper.depot.get(await keeper.depot.put(content))
    await keeper.depot.worker.maintenance.clean()
    return manifest


async def replace(keeper: Keeper, manifest: Manifest, content: bytes) -> None:
    await keeper.depot.storage.blobs.delete(keeper.depot.place_of(manifest))
    await keeper.depot.storage.blobs.write(manifest.uri, content)


async def test_what_is_whole_is_told_as_nothing(keeper: Keeper) -> None:
    for number in range(3):
        await put(keeper, b"%d" % number)

    page = await keeper.audit()

    assert (page.checked, page.total, page.hashed_bytes, page.next_cursor) == (3, 3, 3, None)
    assert page.missing == page.damaged == page.restored == ()


async def test_missing_bytes_are_told_but_their_manifest_stays(keeper: Keeper) -> None:
    manifest = await put(keeper)
    place = keeper.depot.place_of(manifest)
    await keeper.depot.storage.blobs.delete(place)

    page = await keeper.audit()

    assert [(trouble.artifact_id, trouble.key) for trouble in page.missing] == [(manifest.id, place)]
    assert "backup" in page.missing[0].problem
    assert await keeper.artifacts() == [manifest.id]


async def test_bytes_of_another_size_are_damaged_even_if_none_are_read(keeper: Keeper) -> None:
    manifest = await put(keeper)
    await replace(keeper, manifest, CONTENT + b"!")

    (trouble,) = (await keeper.audit(rehash=False)).damaged

    assert trouble.artifact_id == manifest.id
    assert f"{len(CONTENT) + 1} bytes, not {len(CONTENT)}" in trouble.problem


async def test_a_flipped_bit_is_found_by_reading_alone(keeper: Keeper) -> None:
    manifest = await put(keeper)
    await replace(keeper, manifest, CONTENT[:-1] + b"!")

    assert (await keeper.audit(rehash=False)).damaged == ()
    (trouble,) = (await keeper.audit()).damaged

    assert "sha256" in trouble.problem
    assert len(await keeper.keys("objects/sha256")) == 1


async def test_missing_bytes_that_lie_among_the_orphans_are_put_back(keeper: Keeper) -> None:
    manifest = await put(keeper)
    day = (keeper.depot.clock() - timedelta(days=5)).date()
    assert await keeper.depot.storage.blobs.move(keeper.depot.place_of(manifest), orphan_key(manifest.uri, day))

    page = await keeper.audit(rehash=False)

    assert [trouble.artifact_id for trouble in page.restored] == [manifest.id]
    assert keeper.depot.content_of(manifest) == CONTENT
    assert (await keeper.audit()).restored == ()


async def test_orphans_that_are_damaged_are_told_so(keeper: Keeper) -> None:
    manifest = await put(keeper)
    await keeper.depot.storage.blobs.delete(keeper.depot.place_of(manifest))
    orphan = orphan_key(manifest.uri, keeper.depot.clock().date())
    await keeper.depot.storage.blobs.write(orphan, CONTENT[:-1] + b"!")

    page = await keeper.audit(rehash=False)

    assert (page.restored, len(page.damaged)) == ((), 1)


async def test_bytes_that_several_artifacts_have_are_read_once_and_told_for_each(keeper: Keeper) -> None:
    first, second = await put(keeper), await put(keeper)
    assert (await keeper.audit()).hashed_bytes == len(CONTENT)
    await keeper.depot.storage.blobs.delete(keeper.depot.place_of(first))

    page = await keeper.audit()

    assert [trouble.artifact_id for trouble in page.missing] == [first.id, second.id]


async def test_pages_cover_everything_once(keeper: Keeper) -> None:
    for number in range(5):
        await put(keeper, b"%d" % number)

    checked, cursor = [], None
    while True:
        page = await keeper.audit(cursor=cursor, limit=2)
        checked.append(page.checked)
        cursor = page.next_cursor
        if cursor is None:
            break

    assert checked == [2, 2, 1]


async def test_what_has_expired_is_not_missed(keeper: Keeper) -> None:
    await keeper.depot.put(CONTENT, retention="1d")
    await keeper.orphaned_after(days=2)
    await keeper.orphaned_after(days=9)

    assert (await keeper.audit()).checked == 0


@pytest.mark.parametrize("cursor", ["x", "-1", "1 or 1=1", "9" * 30])
async def test_a_cursor_of_somebodys_own_is_refused(keeper: Keeper, cursor: str) -> None:
    with pytest.raises(Rejected) as no:
        await keeper.audit(cursor=cursor)

    assert no.value.code is Code.INVALID


async def test_after_the_commit_the_store_gets_a_copy_of_the_manifest(keeper: Keeper) -> None:
    manifest = await put(keeper)

    copied = ManifestCopy.from_bytes(await keeper.depot.storage.blobs.read(copy_key(manifest.id)))

    assert copied.manifest == Manifest.model_validate(manifest.model_dump(include=set(Manifest.model_fields)))
    assert (copied.generation, copied.logical_id, copied.expired_at) == (1, manifest.id, None)


async def test_the_audit_writes_the_copy_of_a_manifest_that_has_none(keeper: Keeper) -> None:
    manifest = await put(keeper)
    await keeper.depot.storage.blobs.delete(copy_key(manifest.id))

    assert (await keeper.audit()).copies_written == 1
    assert (await keeper.audit()).copies_written == 0
    assert await keeper.keys("manifests") == [copy_key(manifest.id)]


async def test_storage_audits_by_itself_round_and_round(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(rules=MaintenanceRules(interval=None, audit_within=timedelta(days=1))))
    manifests = [await put(keeper, b"%d" % number) for number in range(3)]
    await keeper.depot.storage.blobs.delete(copy_key(manifests[2].id))

    for _ in range(5):
        await run_task(keeper.depot.worker, "maintain")
        keeper.depot.clock.advance(minutes=20)

    assert len(await keeper.keys("manifests")) == 3
    assert (await keeper.stats()).audited_at is not None


async def test_stats_count_what_there_is(keeper: Keeper) -> None:
    await put(keeper)
    await keeper.depot.put(b"draft", artifact_type="draft", retention="1d")
    keeper.depot.stage(b"staged")
    keeper.depot.clock.advance(days=2)
    before = await keeper.stats()
    assert before.oldest_staged is not None
    assert before.spent_uploads == 1
    await keeper.collect()

    stats = await keeper.stats()

    assert (stats.artifacts.count, stats.artifacts.size_bytes) == (1, len(CONTENT))
    assert (stats.expired.count, stats.expired.size_bytes) == (1, 5)
    assert {state: amount.count for state, amount in stats.by_state.items()} == {"live": 1, "gone": 1}
    assert {name: amount.count for name, amount in stats.by_type.items()} == {"research_report": 1}
    assert {name: amount.size_bytes for name, amount in stats.by_owner.items()} == {"agent.researcher": len(CONTENT)}
    assert (stats.orphans.count, stats.notices) == (2, 3)
    assert stats.collected_at == keeper.depot.clock()

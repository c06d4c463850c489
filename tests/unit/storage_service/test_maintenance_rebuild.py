"""What the store remembers brings back a database that was lost, or restored from an older backup."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import delete

from bus_schema.replies import Code
from bus_schema.storage import GetLineage, GetVersions
from bus_schema.storage_maintenance import Rebuild
from mindbus.errors import Rejected
from storage_service.blobs import Labels
from storage_service.maintenance.manifest_copies import ManifestCopy, copy_key, orphan_key
from storage_service.service import StorageService
from storage_service.tables import StorageBase
from tests.maintenance_kit import CONTENT, OPERATOR, Keeper, counts
from tests.passing_blobs import PassingBlobs
from tests.storage_kit import CRITIC, ON_FILES, RESEARCHER, TRACE, Depot, OpenDepot


@pytest.fixture
def keeper(depot: Depot) -> Keeper:
    return Keeper(depot)


async def lose_database(keeper: Keeper, but: Sequence[str] = ()) -> None:
    """As a restored backup from before anything was made; `but` are tables that are kept."""
    async with keeper.depot.database.transaction() as session:
        for table in reversed(StorageBase.metadata.sorted_tables):
            if table.name not in but:
                await session.execute(delete(table))


async def put(keeper: Keeper, content: bytes = CONTENT, **changes: Any) -> str:
    artifact_id = await keeper.depot.put(content, **changes)
    await keeper.depot.worker.maintenance.clean()
    return artifact_id


async def test_a_lost_database_is_rebuilt_from_the_copies(keeper: Keeper) -> None:
    manifests = [await keeper.depot.get(await put(keeper, b"%d" % number)) for number in range(5)]
    await lose_database(keeper)
    assert await keeper.artifacts() == []

    page = await keeper.rebuild()

    assert (page.restored, page.present, page.recovered, page.lost) == (5, 0, 0, ())
    for manifest in manifests:
        assert await keeper.depot.get(manifest.id) == manifest
        assert keeper.depot.content_of(manifest)
    assert (await keeper.audit()).missing == ()


async def test_rebuilding_what_is_there_changes_nothing(keeper: Keeper) -> None:
    mine = await put(keeper)
    before = await keeper.depot.get(mine)

    page = await keeper.rebuild()

    assert (page.restored, page.present, page.recovered, page.lost) == (0, 1, 0, ())
    assert await keeper.depot.get(mine) == before


async def test_a_dry_run_says_what_would_be_restored(keeper: Keeper) -> None:
    await put(keeper)
    await lose_database(keeper)

    page = await keeper.rebuild(dry_run=True)

    assert (page.restored, page.recovered, page.lost) == (1, 0, ())
    assert await keeper.artifacts() == []


async def test_versions_and_lineage_come_back(keeper: Keeper) -> None:
    source = await put(keeper, b"source")
    first = await put(keeper, b"first", context={"input_artifacts": [source]})
    second = await put(keeper, b"second", version=2, supersedes=first, context={"input_artifacts": [source, first]})
    await lose_database(keeper)

    await keeper.rebuild()

    versions = await keeper.depot.handle(GetVersions(artifact_id=second))
    assert [version.id for version in versions.items] == [first, second]
    lineage = await keeper.depot.handle(GetLineage(artifact_id=second))
    assert {(edge.source, edge.target) for edge in lineage.edges} == {
        (source, first),
        (source, second),
        (first, second),
    }


async def test_who_may_read_it_comes_back(keeper: Keeper) -> None:
    await keeper.depot.set_members(RESEARCHER)
    mine = await put(keeper)
    await lose_database(keeper)

    await keeper.rebuild()

    with pytest.raises(Rejected) as no:
        await keeper.depot.get(mine, by=CRITIC, trace=TRACE)
    assert no.value.code is Code.NOT_FOUND


async def test_what_had_expired_stays_expired_with_its_id_taken(keeper: Keeper) -> None:
    mine = await put(keeper, retention="1d")
    await keeper.orphaned_after(days=2)
    await keeper.told()
    await lose_database(keeper)

    assert (await keeper.rebuild()).restored == 1

    assert await keeper.artifacts() == []
    with pytest.raises(Rejected) as no:
        await keeper.depot.register(keeper.depot.manifest(CONTENT, id=mine))
    assert no.value.code is Code.CONFLICT
    manifest = await keeper.depot.get(await put(keeper))
    assert manifest.uri.endswith("/2")


async def test_an_artifact_without_bytes_is_told_as_lost_and_not_restored(keeper: Keeper) -> None:
    manifest = await keeper.depot.get(await put(keeper))
    await keeper.depot.storage.blobs.delete(keeper.depot.place_of(manifest))
    await lose_database(keeper)

    page = await keeper.rebuild()

    assert [lost.key for lost in page.lost] == [manifest.id]
    assert await keeper.artifacts() == []


async def test_bytes_are_fetched_back_from_the_orphans(keeper: Keeper) -> None:
    manifest = await keeper.depot.get(await put(keeper))
    orphan = orphan_key(manifest.uri, keeper.depot.clock().date())
    await keeper.depot.storage.blobs.move(keeper.depot.place_of(manifest), orphan)
    await lose_database(keeper)

    assert (await keeper.rebuild(dry_run=True)).restored == 1
    assert (await keeper.rebuild()).restored == 1

    assert keeper.depot.content_of(manifest) == CONTENT


async def test_a_deep_rebuild_takes_no_damaged_bytes(keeper: Keeper) -> None:
    manifest = await keeper.depot.get(await put(keeper))
    await keeper.depot.storage.blobs.delete(keeper.depot.place_of(manifest))
    await keeper.depot.storage.blobs.write(manifest.uri, CONTENT[:-1] + b"!")
    await lose_database(keeper)

    page = await keeper.rebuild(deep=True)

    assert page.restored == 0
    assert manifest.id in {lost.key for lost in page.lost}


async def test_a_copy_that_cannot_be_read_is_told_and_stays(keeper: Keeper) -> None:
    key = copy_key("art_1")
    await keeper.depot.storage.blobs.write(key, b'{"manifest": 1}')
    await keeper.depot.storage.blobs.write("manifests/00/notes.txt", b"")

    page = await keeper.rebuild()

    assert {lost.key for lost in page.lost} == {key, "manifests/00/notes.txt"}
    assert key in await keeper.keys("manifests")


async def test_a_copy_from_a_newer_mindbus_is_still_understood(keeper: Keeper) -> None:
    mine = await put(keeper)
    content = await keeper.depot.storage.blobs.read(copy_key(mine))

    assert ManifestCopy.from_bytes(content[:-1] + b', "colour": "blue"}').manifest.id == mine


async def test_after_an_older_backup_nothing_is_collected_until_it_is_rebuilt(keeper: Keeper) -> None:
    before = await put(keeper, b"before")
    rows = await keeper.depot.get(before)
    later = await put(keeper, b"later")
    async with keeper.depot.database.transaction() as session:
        for table in reversed(StorageBase.metadata.sorted_tables):
            if table.name in ("artifact_manifests", "spent_uploads", "inbox"):
                matching = table.c.id == later if table.name == "artifact_manifests" else True
                await session.execute(delete(table).where(matching))  # type: ignore[arg-type]  # all of them
            elif table.name == "blobs":
                sha256 = hashlib.sha256(b"later").hexdigest()
                await session.execute(delete(table).where(table.c.sha256 == sha256))
    keeper.depot.clock.advance(days=2)

    assert (await keeper.refusal()).details["forgotten"] == 1
    assert (await keeper.rebuild()).restored == 1

    assert counts(await keeper.collect()) == {}
    assert await keeper.depot.get(before) == rows
    assert keeper.depot.content_of(await keeper.depot.get(later)) == b"later"


class Labelled(PassingBlobs):
    """As an object store, which knows of every object whose it is."""

    async def labels(self, key: str) -> Labels | None:
        return Labels("art_" + key.split("/")[4][:8], RESEARCHER)


def labelled(storage: StorageService) -> StorageService:
    care = dataclasses.replace(storage.maintenance, blobs=Labelled(storage.blobs))
    return dataclasses.replace(storage, maintenance=care)


async def test_an_object_that_no_copy_names_is_recovered_for_its_maker_alone(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(arrange=labelled))
    key = await keeper.put_object(CONTENT)

    page = await keeper.rebuild()

    assert (page.restored, page.recovered) == (0, 1)
    (artifact_id,) = await keeper.artifacts()
    manifest = await keeper.depot.get(artifact_id)
    assert (manifest.uri, manifest.visibility, manifest.owner) == (key, "private", "agent.researcher")
    assert keeper.depot.content_of(manifest) == CONTENT


async def test_an_object_whose_registration_is_under_way_is_not_recovered(open_depot: OpenDepot) -> None:
    keeper = Keeper(open_depot(arrange=labelled))
    await keeper.depot.storage.registry.pin([hashlib.sha256(CONTENT).hexdigest()])
    await keeper.put_object(CONTENT)

    assert (await keeper.rebuild()).recovered == 0


async def test_an_object_that_nothing_names_is_told(keeper: Keeper) -> None:
    key = await keeper.put_object(CONTENT)

    page = await keeper.rebuild()

    assert [(lost.key, lost.reason) for lost in page.lost] == [(key, "nothing says whose it is")]


@ON_FILES
async def test_a_rebuild_comes_in_pages(keeper: Keeper) -> None:
    for number in range(4):
        await put(keeper, b"%d" % number)
    await lose_database(keeper)

    restored, cursor, pages = 0, None, 0
    while True:
        page = await keeper.depot.handle(Rebuild(cursor=cursor, limit=1), OPERATOR)
        restored, cursor, pages = restored + page.restored, page.next_cursor, pages + 1
        if cursor is None:
            break

    assert (restored, page.done) == (4, page.total)
    # The last of them ends the listing where nothing sorts behind it.
    assert pages >= 4


@pytest.mark.parametrize("cursor", ["x", "manifests/zz", "../etc", "manifests/0"])
async def test_a_cursor_of_somebodys_own_is_refused(keeper: Keeper, cursor: str) -> None:
    with pytest.raises(Rejected) as no:
        await keeper.rebuild(cursor=cursor)

    assert no.value.code is Code.INVALID

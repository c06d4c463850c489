"""What a store keeps is found out by trying, whatever it says of itself."""

from dataclasses import asdict, fields, replace

import pytest

from mindbus.files.s3_store import S3Files
from storage_service.blobs import NotGuaranteed
from storage_service.object_store import Guarantees, StoreProbe, UnsoundStore
from storage_service.s3_blobs import S3Blobs
from storage_service.s3_objects import S3ProbedObjects
from tests.lax_objects import ALL, LaxObjects
from tests.seaweed import Place

NAMES = [each.name for each in fields(Guarantees)]


async def test_a_store_that_keeps_everything_is_seen_to_do_so() -> None:
    assert await StoreProbe(LaxObjects(ALL)).probe() == ALL


@pytest.mark.parametrize("missing", NAMES)
async def test_what_a_store_does_not_keep_is_noticed(missing: str) -> None:
    kept = replace(ALL, **{missing: False})

    assert await StoreProbe(LaxObjects(kept)).probe() == kept


async def test_a_store_that_keeps_nothing_can_be_used(caplog: pytest.LogCaptureFixture) -> None:
    objects = LaxObjects(Guarantees())
    blobs = S3Blobs(objects, probe=StoreProbe(objects).probe)

    await blobs.prepare()

    assert blobs.guarantees == Guarantees()


async def test_nothing_is_left_of_a_probe() -> None:
    objects = LaxObjects()

    await StoreProbe(objects).probe()

    assert not objects.kept


async def test_a_store_that_does_not_show_what_was_written_is_refused() -> None:
    with pytest.raises(UnsoundStore, match="use another"):
        await StoreProbe(LaxObjects(shows_what_was_written=False)).probe()


@pytest.mark.parametrize("missing", ["puts_once", "copies_once", "copies_what_was_seen"])
async def test_a_store_that_writes_over_is_refused_where_it_must_not(missing: str) -> None:
    objects = LaxObjects(replace(ALL, **{missing: False}))
    blobs = S3Blobs(objects, probe=StoreProbe(objects).probe, must_write_once=True)

    with pytest.raises(NotGuaranteed, match="MINDBUS_ARTIFACTS_WRITE_ONCE to verified"):
        await blobs.prepare()


async def test_what_the_store_keeps_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    objects = LaxObjects(replace(ALL, completes_once=False))

    await S3Blobs(objects, probe=StoreProbe(objects).probe).prepare()

    (line,) = capsys.readouterr().err.splitlines()
    assert "object store probed" in line
    assert all(f"{name}={kept}" in line for name, kept in asdict(objects.keeps).items())


async def test_seaweedfs_keeps_what_storage_asks_of_it(s3_place: Place) -> None:
    files = s3_place.files()
    assert isinstance(files, S3Files)
    objects = S3ProbedObjects(files)

    found = await StoreProbe(objects).probe()

    # Two multipart uploads of one key may both be told that they were the first: nothing of ours counts on it.
    assert replace(found, completes_once=True) == ALL
    assert [each async for each in objects.list("")] == []

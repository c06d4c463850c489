"""The object store's double keeps the conditions that a real one keeps."""

import asyncio
from datetime import UTC, datetime

import pytest

from mindbus.files.s3_store import S3Files
from storage_service.object_store import NO_LABELS, Guarantees, ObjectChanged, ObjectExists, ObjectStore
from storage_service.s3_blobs import S3Blobs
from storage_service.service import open_blobs
from tests.crashes.gates import OpenGates
from tests.crashes.memory_objects import Bucket, MemoryObjects
from tests.seaweed import Place

ALL = Guarantees(puts_once=True, copies_once=True, copies_what_was_seen=True, checks_sha256=True)


@pytest.fixture(params=["memory", pytest.param("seaweed", marks=pytest.mark.backends)])
def place(request: pytest.FixtureRequest) -> Place | None:
    """None is the double."""
    found: Place | None = None if request.param == "memory" else request.getfixturevalue("s3_place")
    return found


@pytest.fixture
async def store(place: Place | None) -> tuple[ObjectStore, Guarantees]:
    """With what it was seen to keep."""
    if place is None:
        bucket = Bucket(lambda: datetime.now(UTC), ALL)
        return MemoryObjects(bucket, OpenGates(asyncio.get_running_loop(), lambda: None)), ALL
    files = place.files()
    assert isinstance(files, S3Files)
    blobs = open_blobs(files)
    assert isinstance(blobs, S3Blobs)
    await blobs.prepare()
    return blobs.objects, blobs.guarantees


async def content(objects: ObjectStore, key: str, start: int = 0) -> bytes:
    return b"".join([piece async for piece in objects.read(key, start=start)])


async def test_what_is_put_is_there_with_its_labels(store: tuple[ObjectStore, Guarantees]) -> None:
    objects, _ = store
    await objects.put("a/1", b"findings", {"artifact-id": "art_1"}, if_absent=False)
    await objects.put("a/2", b"findings", NO_LABELS, if_absent=False)
    await objects.put("b/1", b"other", NO_LABELS, if_absent=False)

    first, second, other = [await objects.head(key) for key in ("a/1", "a/2", "b/1")]
    assert first is not None
    assert second is not None
    assert other is not None
    assert (first.size_bytes, dict(first.labels)) == (8, {"artifact-id": "art_1"})
    assert first.etag == second.etag != other.etag
    assert await content(objects, "a/1", start=4) == b"ings"
    assert [(each.key, dict(each.labels)) async for each in objects.list("a/")] == [("a/1", {}), ("a/2", {})]


async def test_what_is_not_there_is_told(store: tuple[ObjectStore, Guarantees]) -> None:
    objects, _ = store
    await objects.delete("a/1")

    assert await objects.head("a/1") is None
    with pytest.raises(FileNotFoundError):
        await content(objects, "a/1")
    with pytest.raises(FileNotFoundError):
        await objects.copy("a/1", "a/2", NO_LABELS, if_match="0" * 32, if_absent=False)
    assert [each async for each in objects.list("a/")] == []


async def test_conditions_are_kept(store: tuple[ObjectStore, Guarantees]) -> None:
    objects, guarantees = store
    # SeaweedFS is one of the stores that keep them all, so that none of these goes unasked.
    assert guarantees.writes_once
    await objects.put("a/1", b"findings", NO_LABELS, if_absent=True)
    await objects.put("a/2", b"other", NO_LABELS, if_absent=True)
    first, second = await objects.head("a/1"), await objects.head("a/2")
    assert first is not None
    assert second is not None

    with pytest.raises(ObjectExists):
        await objects.put("a/1", b"other", NO_LABELS, if_absent=True)
    with pytest.raises(ObjectExists):
        await objects.copy("a/1", "a/2", NO_LABELS, if_match=first.etag, if_absent=True)
    with pytest.raises(ObjectChanged):
        await objects.copy("a/1", "a/3", NO_LABELS, if_match=second.etag, if_absent=True)
    with pytest.raises(ObjectChanged):
        _ = [piece async for piece in objects.read("a/1", if_match=second.etag)]

    await objects.copy("a/1", "a/3", {"sha256": "0"}, if_match=first.etag, if_absent=True)
    assert [await content(objects, key) for key in ("a/1", "a/2", "a/3")] == [b"findings", b"other", b"findings"]
    copied = await objects.head("a/3")
    assert copied is not None
    assert dict(copied.labels) == {"sha256": "0"}

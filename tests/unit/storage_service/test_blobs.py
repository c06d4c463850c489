"""Staged bytes become objects whole, or not at all, wherever they lie."""

import asyncio
import hashlib
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from mindbus.files.keys import object_key
from storage_service.blobs import Blobs, Declared, Labels, ObjectDamaged
from storage_service.errors import ContentMismatch, StagedFileMissing
from storage_service.local_blobs import LocalBlobs
from storage_service.object_store import NO_LABELS, Guarantees, ObjectStore
from storage_service.s3_blobs import S3Blobs
from storage_service.s3_objects import S3Objects
from tests.lax_objects import ALL, LaxObjects
from tests.seaweed import Place

UPLOAD = "staging/2026/03/14/agent_researcher/0123456789abcdef0123456789abcdef"
LABELS = Labels("art_1", "user.Анна@example")
CONTENT = "Вывод: findings\n".encode() * 1000
ORPHAN = "orphans/2026-03-14"


class Shelf(Protocol):
    """What lies in the store, past all rules."""

    @property
    def blobs(self) -> Blobs: ...

    async def put(self, key: str, content: bytes) -> None: ...

    async def content(self, key: str) -> bytes | None: ...

    async def keys(self, prefix: str) -> list[str]: ...


@dataclass
class FolderShelf:
    root: Path

    def __post_init__(self) -> None:
        self.blobs = LocalBlobs(self.root, has_packs=False)

    async def put(self, key: str, content: bytes) -> None:
        (self.root / key).parent.mkdir(parents=True, exist_ok=True)
        (self.root / key).write_bytes(content)

    async def content(self, key: str) -> bytes | None:
        return (self.root / key).read_bytes() if (self.root / key).exists() else None

    async def keys(self, prefix: str) -> list[str]:
        found = (str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())
        return sorted(key for key in found if key.startswith(prefix))


@dataclass
class ObjectShelf:
    objects: ObjectStore
    guarantees: Guarantees
    whole_bytes: int

    def __post_init__(self) -> None:
        self.blobs = S3Blobs(self.objects, self.guarantees, self.whole_bytes)

    async def put(self, key: str, content: bytes) -> None:
        await self.objects.put(key, content, NO_LABELS, if_absent=False)

    async def content(self, key: str) -> bytes | None:
        if await self.objects.head(key) is None:
            return None
        return b"".join([piece async for piece in self.objects.read(key)])

    async def keys(self, prefix: str) -> list[str]:
        return [found.key async for found in self.objects.list(prefix)]


SMALL, LARGE = 1024 * 1024, -1
NOTHING = Guarantees(lists_what_was_written=True)
DROPS_DIGESTS = replace(ALL, checks_sha256=False)
OBJECT_STORES = {
    "one that keeps everything, small": (ALL, SMALL),
    "one that keeps everything, large": (ALL, LARGE),
    "one that keeps nothing, small": (NOTHING, SMALL),
    "one that keeps nothing, large": (NOTHING, LARGE),
    "one without digests, large": (DROPS_DIGESTS, LARGE),
}
ON_SEAWEED = ["one that keeps everything, small", "one that keeps everything, large", "one that keeps nothing, large"]


@pytest.fixture(
    params=[
        "folder",
        *OBJECT_STORES,
        *(pytest.param(f"seaweedfs as {name}", marks=pytest.mark.backends) for name in ON_SEAWEED),
    ]
)
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    if request.param == "folder":
        return FolderShelf(tmp_path)
    guarantees, whole_bytes = OBJECT_STORES[request.param.removeprefix("seaweedfs as ")]
    if not request.param.startswith("seaweedfs"):
        return ObjectShelf(LaxObjects(guarantees), guarantees, whole_bytes)
    place: Place = request.getfixturevalue("s3_place")
    return ObjectShelf(S3Objects(place.bucket()), guarantees, whole_bytes)


@pytest.fixture
def blobs(shelf: Shelf) -> Blobs:
    return shelf.blobs


def declared(content: bytes = CONTENT) -> Declared:
    return Declared(hashlib.sha256(content).hexdigest(), len(content))


KEY = object_key(declared().sha256, 1)


async def test_staged_bytes_are_published_under_their_key(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)

    await blobs.promote(UPLOAD, KEY, declared(), LABELS)

    assert await shelf.content(KEY) == CONTENT
    assert await shelf.keys("") == [KEY, UPLOAD]


async def test_publishing_again_changes_nothing(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)
    await blobs.promote(UPLOAD, KEY, declared(), LABELS)

    await blobs.promote(UPLOAD, KEY, declared(), Labels("art_2", "user.eve"))

    assert await shelf.content(KEY) == CONTENT
    assert await blobs.labels(KEY) in (LABELS, None)


@pytest.mark.parametrize(
    "other",
    [b"", CONTENT[:-1], CONTENT + b"!", CONTENT[:-1] + b"!", CONTENT * 2],
    ids=["empty", "shorter", "longer", "one byte differs", "twice"],
)
async def test_other_bytes_than_declared_are_not_published(blobs: Blobs, shelf: Shelf, other: bytes) -> None:
    await shelf.put(UPLOAD, other)

    with pytest.raises(ContentMismatch):
        await blobs.promote(UPLOAD, KEY, declared(), LABELS)

    assert await shelf.keys("") == [UPLOAD]


async def test_other_bytes_are_not_published_even_where_the_declared_ones_are(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)
    await blobs.promote(UPLOAD, KEY, declared(), LABELS)
    await shelf.put(UPLOAD, CONTENT[::-1])

    with pytest.raises(ContentMismatch):
        await blobs.promote(UPLOAD, KEY, declared(), LABELS)

    assert await shelf.content(KEY) == CONTENT


async def test_an_empty_artifact_is_an_artifact(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, b"")
    key = object_key(declared(b"").sha256, 1)

    await blobs.promote(UPLOAD, key, declared(b""), LABELS)

    assert await blobs.size_bytes(key) == 0


async def test_a_known_digest_is_no_right_to_its_bytes(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)
    await blobs.promote(UPLOAD, KEY, declared(), LABELS)
    await blobs.discard(UPLOAD)

    with pytest.raises(StagedFileMissing):
        await blobs.promote(UPLOAD, KEY, declared(), LABELS)


async def test_an_object_of_another_size_is_reported_as_damaged(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)
    await shelf.put(KEY, CONTENT[:10])

    with pytest.raises(ObjectDamaged):
        await blobs.promote(UPLOAD, KEY, declared(), LABELS)

    assert await shelf.content(KEY) == CONTENT[:10]


async def test_a_missing_upload_is_said_to_be_missing(blobs: Blobs, shelf: Shelf) -> None:
    with pytest.raises(StagedFileMissing):
        await blobs.promote(UPLOAD, KEY, declared(), LABELS)


async def test_registrations_of_the_same_bytes_at_once_publish_one_object(blobs: Blobs, shelf: Shelf) -> None:
    uploads = [f"{UPLOAD[:-1]}{number}" for number in range(4)]
    for upload in uploads:
        await shelf.put(upload, CONTENT)

    await asyncio.gather(*(blobs.promote(upload, KEY, declared(), LABELS) for upload in uploads))

    assert await shelf.content(KEY) == CONTENT
    assert await shelf.keys("objects/") == [KEY]


async def test_an_object_says_for_whom_it_was_published(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)
    await blobs.promote(UPLOAD, KEY, declared(), LABELS)

    # A folder keeps nothing beside the bytes.
    assert await blobs.labels(KEY) == (None if isinstance(blobs, LocalBlobs) else LABELS)
    assert await blobs.labels("objects/nothing") is None


async def test_discarding_twice_is_as_good_as_once(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)

    await blobs.discard(UPLOAD)
    await blobs.discard(UPLOAD)

    assert await shelf.keys("") == []


async def test_leftovers_of_dead_processes_are_swept_but_no_copy_under_way(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put("objects/.tmp/0123", b"half")
    now = datetime.now(UTC)

    assert await blobs.sweep_temporary(now - timedelta(hours=1)) == 0
    assert await blobs.sweep_temporary(now + timedelta(hours=1)) == 1
    assert await shelf.keys("") == []


async def test_a_folder_is_listed_with_all_that_lies_under_it(blobs: Blobs, shelf: Shelf) -> None:
    for key in ("staging/a/1", "staging/a/b/2", "staging2/3", "claims/4"):
        await shelf.put(key, key.encode())

    found = {each.key: each async for each in blobs.listing("staging")}

    assert sorted(found) == ["staging/a/1", "staging/a/b/2"]
    assert found["staging/a/b/2"].size_bytes == len("staging/a/b/2")
    assert abs(found["staging/a/1"].modified - datetime.now(UTC)) < timedelta(minutes=5)
    assert [each async for each in blobs.listing("nothing")] == []


async def test_a_digest_is_that_of_the_bytes_as_they_are_now(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(KEY, CONTENT)
    assert await blobs.digest(KEY) == declared()

    await shelf.put(KEY, b"rotten")

    assert await blobs.digest(KEY) == declared(b"rotten")
    with pytest.raises(FileNotFoundError):
        await blobs.digest(f"{KEY}0")


async def test_moving_twice_is_as_good_as_once(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(UPLOAD, CONTENT)
    await blobs.promote(UPLOAD, KEY, declared(), LABELS)
    labels = await blobs.labels(KEY)

    assert await blobs.move(KEY, f"{ORPHAN}/{KEY}")
    assert await blobs.move(KEY, f"{ORPHAN}/{KEY}")

    assert await shelf.keys("o") == [f"{ORPHAN}/{KEY}"]
    assert await shelf.content(f"{ORPHAN}/{KEY}") == CONTENT
    assert await blobs.labels(f"{ORPHAN}/{KEY}") == labels


async def test_moving_what_is_nowhere_is_said_to_have_moved_nothing(blobs: Blobs) -> None:
    assert not await blobs.move(KEY, f"{ORPHAN}/{KEY}")


async def test_moving_keeps_what_is_there_already(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(KEY, CONTENT)
    await shelf.put(f"{ORPHAN}/{KEY}", b"earlier")

    assert await blobs.move(KEY, f"{ORPHAN}/{KEY}")

    assert await shelf.content(f"{ORPHAN}/{KEY}") == b"earlier"
    assert await shelf.content(KEY) is None


async def test_a_small_file_is_written_over_whole(blobs: Blobs, shelf: Shelf) -> None:
    await blobs.write("manifests/ab/art_1.json", b"{}")
    await blobs.write("manifests/ab/art_1.json", CONTENT)

    assert await blobs.read("manifests/ab/art_1.json") == CONTENT
    assert await shelf.keys("") == ["manifests/ab/art_1.json"]
    with pytest.raises(FileNotFoundError):
        await blobs.read("manifests/ab/art_2.json")


async def test_deleting_twice_is_as_good_as_once(blobs: Blobs, shelf: Shelf) -> None:
    await shelf.put(KEY, CONTENT)

    await blobs.delete(KEY)
    await blobs.delete(KEY)

    assert await blobs.size_bytes(KEY) is None
    assert await shelf.keys("") == []


async def test_whoever_writes_meanwhile_only_the_declared_bytes_are_published(blobs: Blobs, shelf: Shelf) -> None:
    content = os.urandom(300_000)
    key = object_key(declared(content).sha256, 1)
    await shelf.put(UPLOAD, content)
    is_over = asyncio.Event()
    writing = asyncio.create_task(_write_in_turn(shelf, (content[::-1], content), is_over))

    outcomes = set()
    for _ in range(6):
        try:
            await blobs.promote(UPLOAD, key, declared(content), LABELS)
            outcomes.add("published")
        except (ContentMismatch, StagedFileMissing) as refusal:
            outcomes.add(type(refusal).__name__)
        assert await shelf.content(key) in (content, None)
    is_over.set()
    await writing

    assert outcomes <= {"published", "ContentMismatch"}
    assert not await shelf.keys("objects/.tmp")


async def _write_in_turn(shelf: Shelf, contents: tuple[bytes, bytes], is_over: asyncio.Event) -> None:
    number = 0
    while not is_over.is_set():
        await shelf.put(UPLOAD, contents[number % 2])
        number += 1
        await asyncio.sleep(0)

"""What is published in an object store is what was hashed, whatever happens in between."""

import hashlib
import itertools
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mindbus.files.keys import object_key
from storage_service.blobs import Declared, Labels, ObjectDamaged
from storage_service.errors import ContentMismatch, StagedFileMissing
from storage_service.object_store import NO_LABELS, Guarantees
from storage_service.s3_blobs import S3Blobs
from storage_service.s3_objects import S3Objects
from tests.lax_objects import ALL, LaxObjects
from tests.seaweed import Place

UPLOAD = "staging/2026/03/14/agent_researcher/0123456789abcdef0123456789abcdef"
LABELS = Labels("art_1", "agent.researcher.1")
CONTENT, OTHER = b"what was declared", b"what it was not.."
NOTHING = Guarantees(lists_what_was_written=True)
MIB = 1024 * 1024


def declared(content: bytes = CONTENT) -> Declared:
    return Declared(hashlib.sha256(content).hexdigest(), len(content))


KEY = object_key(declared().sha256, 1)


def a_collision(_content: bytes) -> str:
    """An ETag that two contents share, as an MD5 may be made to be."""
    return "the same"


class Swap:
    """Writes other bytes over the upload at one moment, counted from the first."""

    def __init__(self, objects: LaxObjects, moment: int, content: bytes) -> None:
        self.objects, self.moment, self.content = objects, moment, content
        self.moments = itertools.count()

    def __call__(self, _operation: str, _key: str) -> None:
        if next(self.moments) == self.moment and UPLOAD in self.objects.kept:
            self.objects.write(UPLOAD, self.content)


@pytest.mark.parametrize(("first", "then"), [(CONTENT, OTHER), (OTHER, CONTENT)], ids=["right, wrong", "wrong, right"])
@pytest.mark.parametrize("etag_of", [None, a_collision], ids=["honest ETags", "equal ETags"])
@pytest.mark.parametrize("keeps", [ALL, NOTHING, replace(ALL, checks_sha256=False)], ids=["all", "none", "no digests"])
@pytest.mark.parametrize("whole_bytes", [1000, -1], ids=["small", "large"])
async def test_no_moment_is_right_to_slip_other_bytes_in(
    first: bytes,
    then: bytes,
    etag_of: Callable[[bytes], str] | None,
    keeps: Guarantees,
    whole_bytes: int,
) -> None:
    for moment in range(14):
        objects = LaxObjects(keeps) if etag_of is None else LaxObjects(keeps, etag_of)
        objects.write(UPLOAD, first)
        objects.meanwhile = Swap(objects, moment, then)

        try:
            await S3Blobs(objects, keeps, whole_bytes).promote(UPLOAD, KEY, declared(), LABELS)
        except ContentMismatch:
            assert objects.content(KEY) is None, moment
        else:
            assert objects.content(KEY) == CONTENT, moment
        assert set(objects.kept) <= {UPLOAD, KEY}


async def test_bytes_that_the_store_vouches_for_are_not_read_again() -> None:
    objects = LaxObjects(ALL)
    objects.write(UPLOAD, CONTENT)
    done = []
    objects.meanwhile = lambda operation, _key: done.append(operation)

    await S3Blobs(objects, ALL, whole_bytes=-1).promote(UPLOAD, KEY, declared(), LABELS)

    assert done == ["head", "copy", "copied", "head"]


async def test_an_upload_that_never_rests_is_refused() -> None:
    objects = LaxObjects(ALL)
    objects.write(UPLOAD, CONTENT)
    contents = itertools.cycle((OTHER[::-1], CONTENT))

    def write(operation: str, key: str) -> None:
        if operation in {"copy", "read"} and key == UPLOAD:
            objects.write(UPLOAD, next(contents))

    objects.meanwhile = write

    with pytest.raises(ContentMismatch):
        await S3Blobs(objects, ALL, whole_bytes=-1).promote(UPLOAD, KEY, declared(), LABELS)

    assert objects.content(KEY) is None


@pytest.mark.parametrize("whole_bytes", [1000, -1], ids=["small", "large"])
async def test_an_object_of_other_bytes_is_never_taken_for_the_artifact(whole_bytes: int) -> None:
    objects = LaxObjects(ALL)
    objects.write(UPLOAD, CONTENT)
    objects.write(KEY, OTHER)

    with pytest.raises(ObjectDamaged):
        await S3Blobs(objects, ALL, whole_bytes).promote(UPLOAD, KEY, declared(), LABELS)

    assert objects.content(KEY) == OTHER


class Shaky(LaxObjects):
    """Does what it is asked, then answers 500, once for each operation it is told."""

    failing: tuple[str, ...] = ()

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        await super().put(key, content, labels, if_absent=if_absent)
        self._fail("put")

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        await super().copy(source, target, labels, if_match=if_match, if_absent=if_absent)
        self._fail("copy")

    async def delete(self, key: str) -> None:
        await super().delete(key)
        self._fail("delete")

    def _fail(self, operation: str) -> None:
        if operation in self.failing:
            self.failing = tuple(each for each in self.failing if each != operation)
            raise OSError("500")


@pytest.mark.parametrize("keeps", [ALL, NOTHING], ids=["all", "none"])
@pytest.mark.parametrize("failing", ["put", "copy", "delete"])
@pytest.mark.parametrize("whole_bytes", [1000, -1], ids=["small", "large"])
async def test_a_failure_after_the_effect_is_harmless_when_tried_again(
    keeps: Guarantees, failing: str, whole_bytes: int
) -> None:
    objects = Shaky(keeps)
    objects.write(UPLOAD, CONTENT)
    objects.failing = (failing,)
    blobs = S3Blobs(objects, keeps, whole_bytes)

    for attempt in range(3):
        try:
            await blobs.promote(UPLOAD, KEY, declared(), LABELS)
            assert await blobs.move(KEY, f"orphans/{KEY}")
            assert await blobs.move(f"orphans/{KEY}", KEY)
            await blobs.discard(UPLOAD)
        except OSError:
            assert attempt < 2
        except StagedFileMissing:
            assert objects.content(KEY) == CONTENT
        else:
            break

    assert objects.content(KEY) == CONTENT
    await blobs.sweep_temporary(datetime.now(UTC) + timedelta(hours=1))
    assert set(objects.kept) <= {KEY, UPLOAD}


async def test_more_than_the_store_copies_at_once_is_copied_in_parts(s3_place: Place) -> None:
    content = os.urandom(11 * MIB)
    bucket = s3_place.bucket()
    objects = S3Objects(bucket, copied_whole_bytes=1, copied_part_bytes=5 * MIB)
    key = object_key(declared(content).sha256, 1)
    await objects.put(UPLOAD, content, NO_LABELS, if_absent=False)

    for _ in range(2):
        await S3Blobs(objects, ALL, whole_bytes=0).promote(UPLOAD, key, declared(content), LABELS)

    blobs = S3Blobs(objects, ALL)
    assert await blobs.digest(key) == declared(content)
    assert await blobs.labels(key) == LABELS
    assert (await bucket.run(bucket.require_object(key)))["ETag"].endswith('-3"')
    assert await objects.abort_uploads(datetime.now(UTC) + timedelta(hours=1)) == 0


async def test_uploads_that_were_never_completed_are_swept(s3_place: Place) -> None:
    bucket = s3_place.bucket()
    blobs = S3Blobs(S3Objects(bucket), ALL)
    for upload in (UPLOAD, "elsewhere/of/another"):
        await bucket.run(bucket.call("create_multipart_upload", Key=bucket.path(upload)))
    now = datetime.now(UTC)

    assert await blobs.sweep_temporary(now - timedelta(hours=1)) == 0
    assert await blobs.sweep_temporary(now + timedelta(hours=1)) == 1

    left = await bucket.run(bucket.call("list_multipart_uploads", Prefix=bucket.path("")))
    assert [each["Key"] for each in left["Uploads"]] == [bucket.path("elsewhere/of/another")]

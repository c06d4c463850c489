"""Reading an artifact: checked while it is read, opened only where this store keeps it."""

import hashlib
from pathlib import Path

import pytest

from bus_schema.artifacts import Manifest
from mindbus.sdk.errors import (
    ArtifactCorrupt,
    ArtifactNotFound,
    ArtifactTooLong,
    BytesMissing,
    InvalidArtifactKey,
    NoSuchRange,
    StorageAway,
)
from tests.sdk_kit import TRACE, Bench

CONTENT = b"x" * 3_000_000


async def stored(bench: Bench, content: bytes = CONTENT) -> Manifest:
    async with bench.artifacts() as artifacts:
        put = await artifacts.put(content, artifact_type="draft", trace=TRACE)
    return bench.storage.manifests[put.ref.artifact_id]


async def test_a_reader_gives_pieces_of_bounded_size(bench: Bench) -> None:
    manifest = await stored(bench)

    async with bench.artifacts() as artifacts, artifacts.open(manifest.id) as reader:
        pieces = [piece async for piece in reader]

    assert b"".join(pieces) == CONTENT
    assert max(map(len, pieces)) <= 1024 * 1024


async def test_a_saved_file_is_whole_or_not_there(bench: Bench) -> None:
    manifest = await stored(bench)
    target = bench.folder / "out" / "статья.md"
    target.parent.mkdir()
    async with bench.artifacts() as artifacts:
        await artifacts.save(manifest.id, target)
        assert target.read_bytes() == CONTENT
        target.unlink()
        _damage(bench, manifest, CONTENT[:-1] + b"y")

        with pytest.raises(ArtifactCorrupt):
            await artifacts.save(manifest.id, target)

    assert _names(target.parent) == []


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT + b"x", b"", CONTENT[:-1] + b"y"])
async def test_other_bytes_are_never_passed_off_as_the_artifact(bench: Bench, damaged: bytes) -> None:
    manifest = await stored(bench)
    _damage(bench, manifest, damaged)

    async with bench.artifacts() as artifacts:
        with pytest.raises(ArtifactCorrupt):
            await artifacts.get(manifest.id)


async def test_missing_bytes_are_said_to_be_missing(bench: Bench) -> None:
    manifest = await stored(bench)
    bench.files.delete(manifest.uri)

    async with bench.artifacts() as artifacts:
        with pytest.raises(BytesMissing, match=manifest.id):
            await artifacts.get(manifest.id)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "objects/sha256/../../../../etc/passwd",
        "s3://bucket/objects/sha256/aa/bb/cc/1",
        "staging/2026/03/14/agent_researcher/" + "a" * 32,
        f"objects/sha256/00/00/{'0' * 64}/1",
    ],
)
async def test_an_address_is_recognised_and_never_opened_as_given(bench: Bench, uri: str) -> None:
    manifest = await stored(bench)
    bench.storage.manifests[manifest.id] = manifest.model_copy(update={"uri": uri})

    async with bench.artifacts() as artifacts:
        with pytest.raises(InvalidArtifactKey):
            await artifacts.get(manifest.id)


async def test_the_full_address_of_this_store_is_as_good_as_the_key(bench: Bench) -> None:
    manifest = await stored(bench, b"small")
    bench.storage.manifests[manifest.id] = manifest.model_copy(update={"uri": bench.files.uri(manifest.uri)})

    async with bench.artifacts() as artifacts:
        assert hashlib.sha256(await artifacts.get(manifest.id)).hexdigest() == manifest.sha256


async def test_an_empty_artifact_is_an_artifact(bench: Bench) -> None:
    manifest = await stored(bench, b"")

    async with bench.artifacts() as artifacts:
        assert await artifacts.get(manifest.id) == b""


async def test_more_than_the_caller_takes_is_not_read(bench: Bench) -> None:
    manifest = await stored(bench)

    async with bench.artifacts() as artifacts:
        with pytest.raises(ArtifactTooLong, match="3000000 bytes"):
            await artifacts.get(manifest.id, max_bytes=1000)


async def test_what_is_not_there_or_not_to_be_had_now_are_two_things(bench: Bench) -> None:
    async with bench.artifacts() as artifacts:
        with pytest.raises(ArtifactNotFound):
            await artifacts.get("art_none")
        assert await artifacts.find("art_none", trace=TRACE) is None
        bench.storage.is_away = True
        with pytest.raises(StorageAway):
            await artifacts.get("art_none")


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 5, b"01234"),
        (95, None, b"56789"),
        (-3, None, b"789"),
        (-3, 2, b"78"),
        (97, 50, b"789"),
        (-500, 4, b"0123"),
        (100, None, b""),
        (7, 0, b""),
    ],
)
async def test_a_range_is_what_a_slice_would_be(bench: Bench, start: int, length: int | None, expected: bytes) -> None:
    manifest = await stored(bench, b"0123456789" * 10)

    async with bench.artifacts() as artifacts:
        assert await artifacts.get(manifest.id, start=start, length=length) == expected


async def test_a_large_range_comes_in_pieces_of_bounded_size(bench: Bench) -> None:
    manifest = await stored(bench)

    async with bench.artifacts() as artifacts, artifacts.open(manifest.id, start=10, length=2_500_000) as reader:
        pieces = [piece async for piece in reader]

    assert sum(map(len, pieces)) == 2_500_000
    assert max(map(len, pieces)) <= 1024 * 1024


@pytest.mark.parametrize(("start", "length"), [(3_000_001, None), (0, -1)])
async def test_a_range_that_cannot_be_is_refused(bench: Bench, start: int, length: int | None) -> None:
    manifest = await stored(bench)

    async with bench.artifacts() as artifacts:
        with pytest.raises(NoSuchRange, match="3000000 bytes"):
            await artifacts.get(manifest.id, start=start, length=length)


async def test_a_range_is_not_checked_but_for_its_length_unless_it_is_the_whole(bench: Bench) -> None:
    manifest = await stored(bench, b"0123456789")
    _damage(bench, manifest, b"0123X")

    async with bench.artifacts() as artifacts:
        assert await artifacts.get(manifest.id, length=5) == b"0123X"
        with pytest.raises(ArtifactCorrupt):
            await artifacts.get(manifest.id, length=6)
        with pytest.raises(ArtifactCorrupt):
            await artifacts.get(manifest.id, length=10)


async def test_whoever_waits_hears_how_far_it_has_come(bench: Bench) -> None:
    heard: list[tuple[str, int, int | None]] = []

    async with bench.artifacts() as artifacts:
        put = await artifacts.put(CONTENT, lambda *told: heard.append(told), artifact_type="draft", trace=TRACE)
        await artifacts.get(put.ref.artifact_id, progress=lambda *told: heard.append(told))

    size = len(CONTENT)
    assert [phase for phase, _done, _all in heard if phase != "read"] == ["receive", "send", "register", "register"]
    assert {all_bytes for _phase, _done, all_bytes in heard} == {size}
    done = [done for phase, done, _all in heard if phase == "read"]
    assert done == sorted(done)
    assert done[-1] == size


def _damage(bench: Bench, manifest: Manifest, content: bytes) -> None:
    bench.files.put(manifest.uri, content)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]

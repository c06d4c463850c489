"""Packs: many small objects in one file, none of which a crash, an erasure or another process takes along."""

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from bus_schema.uploads import PackPlace
from mindbus.files.packs import MAX_PACKED_BYTES, PACKS, read_pack
from storage_service.blobs import ContentGeneration, Declared, Labels, ObjectDamaged
from storage_service.errors import ContentMismatch
from storage_service.local_blobs import LocalBlobs
from storage_service.packs import PackFolder
from tests.unit.storage_service.test_blobs import CONTENT, LABELS, UPLOAD, declared

CONTENTS = [b"number %d" % number * 40 for number in range(20)]


@pytest.fixture
def local(tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path)


async def publish(local: LocalBlobs, content: bytes, generation: int = 1) -> ContentGeneration:
    """A content in a pack, with its place."""
    upload = f"{UPLOAD}{os.urandom(4).hex()}"
    staged = local.root / upload
    staged.parent.mkdir(parents=True, exist_ok=True)
    staged.write_bytes(content)
    known = ContentGeneration(declared(content).sha256, generation)
    packed = await local.promote(upload, known.key, declared(content), LABELS)
    assert packed is not None
    return ContentGeneration(known.sha256, generation, packed)


# What another process does.
PUBLISHING = """
import asyncio, sys
from pathlib import Path
from storage_service.local_blobs import LocalBlobs
from tests.unit.storage_service.test_packs import CONTENTS, publish

async def publish_all(local):
    for content in CONTENTS[:2]:
        await publish(local, content)

asyncio.run(publish_all(LocalBlobs(Path(sys.argv[1]))))
"""
ROOT = Path(__file__).parents[3]


async def keys(local: LocalBlobs) -> list[str]:
    return [found.key async for found in local.listing(PACKS)]


def pack_of(local: LocalBlobs) -> Path:
    (pack,) = (local.root / PACKS).iterdir()
    return pack


async def test_objects_that_come_at_once_are_in_one_pack_after_one_sync(
    local: LocalBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(local, b"the pack is there")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor))

    published = await asyncio.gather(*(publish(local, content) for content in CONTENTS))

    assert len(set(synced)) == 1
    assert len(synced) < len(CONTENTS) / 2
    assert {content.key for content in published} < set(await keys(local))
    for content, expected in zip(published, CONTENTS, strict=True):
        assert await local.read(content.key) == expected
        assert await local.digest(content.key) == declared(expected)
        assert content.packed is not None
        assert read_pack(local.root, content.packed, content.sha256, 1) == expected


async def test_bytes_are_synced_before_they_are_published(local: LocalBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: lengths.append(os.fstat(descriptor).st_size))

    await publish(local, CONTENT)

    assert lengths[-1] == pack_of(local).stat().st_size > len(CONTENT)


async def test_after_a_sync_that_failed_nothing_counts_and_another_pack_is_begun(
    local: LocalBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await publish(local, b"before")

    def fail(_descriptor: int) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="gone"):
            await publish(local, CONTENT)
    after = await publish(local, CONTENT)

    assert before.packed is not None
    assert after.packed is not None
    assert (after.packed.pack != before.packed.pack, after.packed.offset) == (True, 0)
    assert await local.read(before.key) == b"before"


async def test_a_full_disk_harms_nothing_that_is_there(local: LocalBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await publish(local, b"before")
    write, room = os.pwrite, iter([10])

    def until_full(descriptor: int, data: bytes, offset: int) -> int:
        fits = next(room, None)
        if fits is None:
            raise OSError(28, "no space left on device")
        return write(descriptor, data[:fits], offset)

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", until_full)
        with pytest.raises(OSError, match="no space"):
            await publish(local, CONTENT)
    after = await publish(local, CONTENT)

    assert await local.read(before.key) == b"before"
    assert await local.read(after.key) == CONTENT
    assert sorted(await keys(local)) == sorted([before.key, after.key])


@pytest.mark.parametrize("torn_at", [1, 47, 48, 60])
async def test_what_a_killed_process_left_torn_is_no_object_and_in_nobodys_way(local: LocalBlobs, torn_at: int) -> None:
    whole = await publish(local, CONTENT)
    size = pack_of(local).stat().st_size
    await publish(local, b"torn" * 40)
    os.truncate(pack_of(local), size + torn_at)

    again = LocalBlobs(local.root)
    after = await publish(again, b"torn" * 40)

    assert sorted(await keys(again)) == sorted([whole.key, after.key])
    assert (await again.read(whole.key), await again.read(after.key)) == (CONTENT, b"torn" * 40)


@dataclass
class PowerCutDisk:
    """What a power cut leaves of the packs: the bytes and the names that have been synced, and any part of the rest."""

    folder: Path
    synced: dict[str, bytes] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def fsync(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if self.folder.exists() and inode == self.folder.stat().st_ino:
            self.names = {pack.name for pack in self.folder.iterdir()}
        for pack in self.folder.iterdir() if self.folder.exists() else ():
            if pack.stat().st_ino == inode:
                self.synced[pack.name] = pack.read_bytes()

    def images(self, root: Path) -> Iterator[LocalBlobs]:
        """The store as it may be found afterwards: nothing of what was not synced, half of it, all of it."""
        for number, part in enumerate((0.0, 0.5, 1.0)):
            image = root / str(number) / PACKS
            image.mkdir(parents=True, exist_ok=True)
            for name in self.names:
                whole, synced = (self.folder / name).read_bytes(), self.synced.get(name, b"")
                unsynced = whole[len(synced) :]
                (image / name).write_bytes(synced + unsynced[: round(len(unsynced) * part)])
            yield LocalBlobs(image.parent)


async def test_a_power_cut_at_any_moment_takes_nothing_that_was_published(
    local: LocalBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, cuts = PowerCutDisk(local.root / PACKS), count()
    published: list[tuple[ContentGeneration, bytes]] = []
    monkeypatch.setattr(os, "fsync", disk.fsync)

    async def publish_and_cut(content: bytes) -> None:
        published.append((await publish(local, content), content))
        # From here on a manifest may say so.
        for image in disk.images(tmp_path / f"cut {next(cuts)}"):
            for known, expected in published:
                assert await image.read(known.key) == expected
            await publish(image, b"after the cut")

    for first in range(0, len(CONTENTS), 4):
        await asyncio.gather(*map(publish_and_cut, CONTENTS[first : first + 4]))


async def test_a_process_never_appends_to_the_pack_of_another(local: LocalBlobs) -> None:
    first, second = await publish(local, b"one"), await publish(LocalBlobs(local.root), b"two")

    assert first.packed is not None
    assert second.packed is not None
    assert first.packed.pack != second.packed.pack


async def test_of_an_erased_object_no_byte_is_left_and_its_neighbours_stay(local: LocalBlobs) -> None:
    contents = [await publish(local, content) for content in CONTENTS[:3]]
    modified = pack_of(local).stat().st_mtime_ns

    await local.delete(contents[1].key)
    await local.delete(contents[1].key)

    stored = pack_of(local).read_bytes()
    assert CONTENTS[1] not in stored
    assert bytes.fromhex(contents[1].sha256) not in stored
    assert await local.size_bytes(contents[1].key) is None
    assert await keys(local) == [contents[0].key, contents[2].key]
    assert await local.read(contents[2].key) == CONTENTS[2]
    assert pack_of(local).stat().st_mtime_ns == modified


@pytest.mark.parametrize("target", ["", "orphans/2026-03-14/object"])
async def test_an_erasure_that_broke_off_after_the_header_is_ended_by_the_next(
    local: LocalBlobs, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    content = await publish(local, CONTENT)
    write, calls = os.pwrite, iter([True])

    def once(descriptor: int, data: bytes, offset: int) -> int:
        if next(calls, None) is None:
            raise OSError("killed")
        return write(descriptor, data, offset)

    async def erase() -> None:
        await (local.move(content.key, target) if target else local.delete(content.key))

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", once)
        with pytest.raises(OSError, match="killed"):
            await erase()
    assert await local.size_bytes(content.key) is None

    await erase()

    assert CONTENT not in pack_of(local).read_bytes()
    assert not target or await local.read(target) == CONTENT


async def test_the_space_of_an_erased_object_is_given_back(local: LocalBlobs) -> None:
    content = await publish(local, os.urandom(MAX_PACKED_BYTES))
    before = pack_of(local).stat().st_blocks

    await local.delete(content.key)

    assert pack_of(local).stat().st_blocks < before


async def test_an_object_moves_out_of_its_pack_and_comes_back_as_a_file(local: LocalBlobs) -> None:
    content, orphan = await publish(local, CONTENT), "orphans/2026-03-14/object"

    assert await local.move(content.key, orphan)
    assert await local.move(content.key, orphan)
    assert CONTENT not in pack_of(local).read_bytes()
    assert (await local.size_bytes(content.key), await local.read(orphan)) == (None, CONTENT)

    assert await local.move(orphan, content.key)
    assert await local.read(content.key) == (local.root / content.file_key).read_bytes() == CONTENT
    await local.delete(content.key)
    assert await local.size_bytes(content.key) is None


async def test_a_published_content_is_not_packed_again_but_its_staged_bytes_are_read(local: LocalBlobs) -> None:
    content = await publish(local, CONTENT)
    (local.root / UPLOAD).write_bytes(CONTENT)

    assert await LocalBlobs(local.root).promote(UPLOAD, content.key, declared(), LABELS) == content.packed
    assert await keys(local) == [content.key]

    (local.root / UPLOAD).write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(ContentMismatch):
        await local.promote(UPLOAD, content.key, declared(), LABELS)


async def test_a_lost_record_is_made_good_by_the_next_registration_of_its_bytes(local: LocalBlobs) -> None:
    content = await publish(local, CONTENT)
    await local.delete(content.key)
    (local.root / UPLOAD).write_bytes(CONTENT)

    assert await local.promote(UPLOAD, content.key, declared(), LABELS) == content.packed
    assert await local.read(content.key) == CONTENT


async def test_a_content_that_is_a_file_stays_one(local: LocalBlobs) -> None:
    known = ContentGeneration(declared().sha256, 1)
    (local.root / UPLOAD).parent.mkdir(parents=True)
    (local.root / UPLOAD).write_bytes(CONTENT)
    await LocalBlobs(local.root, has_packs=False).promote(UPLOAD, known.key, declared(), LABELS)

    assert await local.promote(UPLOAD, known.key, declared(), LABELS) is None
    assert await keys(local) == []


async def test_registrations_of_the_same_bytes_at_once_share_a_record(local: LocalBlobs) -> None:
    places = {(await publish(local, CONTENT)).key for _ in range(3)}
    places |= {content.key for content in await asyncio.gather(*(publish(local, CONTENT) for _ in range(8)))}

    assert len(places) == 1


async def test_a_larger_object_has_a_file_of_its_own(local: LocalBlobs) -> None:
    content = bytes(MAX_PACKED_BYTES + 1)
    known = Declared(declared(content).sha256, len(content))
    (local.root / UPLOAD).parent.mkdir(parents=True)
    (local.root / UPLOAD).write_bytes(content)
    key = ContentGeneration(known.sha256, 1).key

    assert await local.promote(UPLOAD, key, known, Labels("art_1", "agent.a")) is None
    assert (local.root / key).stat().st_size == len(content)


async def test_empty_packs_go_unless_somebody_appends_to_them(local: LocalBlobs) -> None:
    contents = [await publish(local, content) for content in CONTENTS[:2]]
    other = LocalBlobs(local.root)
    await local.delete(contents[0].key)
    assert PackFolder(other.folders).sweep() == 0

    await local.delete(contents[1].key)
    assert PackFolder(other.folders).sweep() == 0
    assert await local.read((await publish(local, b"more")).key) == b"more"


async def test_an_abandoned_pack_goes_with_its_last_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = await asyncio.create_subprocess_exec(sys.executable, "-c", PUBLISHING, str(tmp_path), cwd=ROOT)
    assert await dying.wait() == 0
    local = LocalBlobs(tmp_path)
    first, second = await keys(local)
    packs = PackFolder(local.folders)

    await local.delete(first)
    assert packs.sweep() == 0
    await local.delete(second)

    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    assert packs.sweep() == 1
    # A power cut must not bring back what an erasure that was cut short has left in it.
    assert synced == [(tmp_path / PACKS).stat().st_ino]
    assert list((tmp_path / PACKS).iterdir()) == []


async def test_what_is_no_pack_is_never_opened(local: LocalBlobs, tmp_path: Path) -> None:
    content = await publish(local, CONTENT)
    secret = tmp_path / "secret"
    pack_of(local).rename(secret)
    assert content.packed is not None
    (local.root / PACKS / content.packed.pack).symlink_to(secret)

    with pytest.raises(OSError, match="symbolic"):
        read_pack(local.root, content.packed, content.sha256, 1)


def odd_places() -> Iterator[PackPlace]:
    for offset in (1, 47, 10**6):
        yield PackPlace(pack="x.pack", offset=offset)


async def test_a_place_where_another_object_is_is_none(local: LocalBlobs) -> None:
    first, second = await publish(local, CONTENTS[0]), await publish(local, CONTENTS[1])
    assert first.packed is not None

    assert await local.size_bytes(ContentGeneration(second.sha256, 1, first.packed).key) is None
    assert await local.size_bytes(ContentGeneration(first.sha256, 2, first.packed).key) is None
    for odd in odd_places():
        place = PackPlace(pack=first.packed.pack, offset=odd.offset)
        assert await local.size_bytes(ContentGeneration(first.sha256, 1, place).key) is None


async def test_an_object_of_another_size_is_damaged(local: LocalBlobs) -> None:
    content = await publish(local, CONTENT)
    await local.delete(content.key)
    await local.write(content.file_key, CONTENT + b"!")
    (local.root / UPLOAD).write_bytes(CONTENT)

    with pytest.raises(ObjectDamaged):
        await local.promote(UPLOAD, content.key, declared(), LABELS)

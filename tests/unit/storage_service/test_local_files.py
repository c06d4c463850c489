"""Whatever agents leave in a folder, looking after it follows no link, hangs on no pipe, leaves the rest alone."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage_service.blobs import ObjectDamaged
from storage_service.local_blobs import LocalBlobs

FOLDER = "staging/2026/03/14/agent_researcher"
KEY = f"{FOLDER}/0123456789abcdef0123456789abcdef"
TARGET = f"orphans/2026-03-15/{KEY}"
# Another file system than that of a test's own folder, on most machines.
ELSEWHERE = Path("/dev/shm")  # a folder of its own is made in it


@pytest.fixture
def local(tmp_path: Path) -> LocalBlobs:
    (tmp_path / "store" / FOLDER).mkdir(parents=True)
    return LocalBlobs(tmp_path / "store", tmp_path / "orphans")


def make_link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def make_hard_link(path: Path, secret: Path) -> None:
    path.hardlink_to(secret)


def make_pipe(path: Path, _secret: Path) -> None:
    os.mkfifo(path)


TRICKS = [make_link, make_hard_link, make_pipe]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """What nobody in staging may reach."""
    file = tmp_path / "secret"
    file.write_text("secret")
    return file


def is_untouched(secret: Path) -> bool:
    return secret.read_text() == "secret"


def names_in(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []


async def keys(local: LocalBlobs, folder: str) -> list[str]:
    return sorted([found.key async for found in local.listing(folder)])


async def test_orphans_may_lie_in_another_folder(local: LocalBlobs, tmp_path: Path) -> None:
    (local.root / KEY).write_bytes(b"abandoned")

    assert await local.move(KEY, TARGET)

    assert (tmp_path / TARGET).read_bytes() == b"abandoned"
    assert not (local.root / "orphans").exists()
    assert await keys(local, "orphans") == [TARGET]
    assert await local.move(TARGET, KEY)
    assert (local.root / KEY).read_bytes() == b"abandoned"


@pytest.mark.parametrize("trick", TRICKS)
async def test_what_is_no_plain_file_is_moved_as_it_is(
    local: LocalBlobs, tmp_path: Path, secret: Path, trick: Callable[[Path, Path], None]
) -> None:
    trick(local.root / KEY, secret)
    assert await keys(local, "staging") == [KEY]

    await local.move(KEY, TARGET)
    await local.delete(TARGET)

    assert await keys(local, "staging") == await keys(local, "orphans") == []
    assert is_untouched(secret)


@pytest.mark.parametrize("trick", [make_link, make_pipe])
async def test_what_is_no_plain_file_is_never_read(
    local: LocalBlobs, secret: Path, trick: Callable[[Path, Path], None]
) -> None:
    trick(local.root / KEY, secret)

    assert await local.size_bytes(KEY) is None
    for reading in (local.digest, local.read):
        with pytest.raises((ObjectDamaged, OSError)):
            await reading(KEY)


async def test_a_folder_that_is_a_link_is_not_entered(local: LocalBlobs, secret: Path) -> None:
    (local.root / FOLDER / "elsewhere").symlink_to(secret.parent)

    assert await keys(local, "staging") == [f"{FOLDER}/elsewhere"]
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        await local.delete(f"{FOLDER}/elsewhere/secret")
    assert is_untouched(secret)


@pytest.mark.parametrize("name", [".hidden", "with space", "новый", "a\nb", "x" * 200, os.fsdecode(b"\xff\xfe")])
async def test_names_that_no_key_has_are_not_listed_but_swept_when_they_are_old(local: LocalBlobs, name: str) -> None:
    odd = local.root / FOLDER / name
    odd.write_bytes(b"odd")
    assert await keys(local, "staging") == []

    assert await local.sweep_temporary(datetime.now(UTC) - timedelta(days=1)) == 0
    os.utime(odd, (time.time() - 90_000,) * 2)
    await local.sweep_temporary(datetime.now(UTC) - timedelta(days=1))

    assert not names_in(odd.parent)


async def test_folders_nested_without_end_are_left_alone(local: LocalBlobs) -> None:
    deep = local.root / FOLDER
    for _ in range(60):
        deep = deep / "deeper"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"deep")
    (local.root / KEY).write_bytes(b"near")

    assert await keys(local, "staging") == [KEY]
    await local.sweep_temporary(datetime.now(UTC) + timedelta(days=1))
    assert (deep / "file").exists()


async def test_empty_folders_go_when_they_are_old(local: LocalBlobs) -> None:
    (local.root / KEY).write_bytes(b"staged")
    (local.root / "staging/2026/01/01/agent_critic").mkdir(parents=True)
    await local.sweep_temporary(datetime.now(UTC) - timedelta(days=1))
    assert (local.root / "staging/2026/01/01/agent_critic").exists()

    # A folder that has lost its last entry is young again.
    for _ in range(4):
        await local.sweep_temporary(datetime.now(UTC) + timedelta(days=1))

    assert not (local.root / "staging/2026/01").exists()
    assert (local.root / KEY).exists()


@pytest.mark.skipif(not ELSEWHERE.is_dir(), reason="there is no other file system to try")
@pytest.mark.parametrize("trick", [None, *TRICKS])
async def test_orphans_may_lie_on_another_file_system(
    tmp_path: Path, secret: Path, trick: Callable[[Path, Path], None] | None
) -> None:
    orphans = ELSEWHERE / f"mindbus-test-{os.getpid()}-{tmp_path.name}"
    local = LocalBlobs(tmp_path / "store", orphans)
    (tmp_path / "store" / FOLDER).mkdir(parents=True)
    if trick is None:
        (tmp_path / "store" / KEY).write_bytes(b"abandoned" * 300_000)
    else:
        trick(tmp_path / "store" / KEY, secret)
    try:
        await local.move(KEY, TARGET)

        assert await keys(local, "staging") == []
        if trick is None:
            assert (orphans / TARGET.removeprefix("orphans/")).read_bytes() == b"abandoned" * 300_000
            assert await local.move(TARGET, KEY)
            assert await local.size_bytes(KEY) == 2_700_000
        assert is_untouched(secret)
    finally:
        await local.delete(TARGET)
        for folder, _, _ in os.walk(orphans, topdown=False):
            os.rmdir(folder)

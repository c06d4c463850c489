"""What only a folder can do to storage, what only in a folder storage can do."""

import asyncio
import hashlib
import io
import os
import socket
import stat
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from mindbus.errors import Rejected
from mindbus.files.keys import object_key
from storage_service.blobs import Declared, Labels, copy_declared
from storage_service.errors import ContentMismatch, NotAPlainFile
from storage_service.local_blobs import LocalBlobs

UPLOAD = "staging/2026/03/14/agent_researcher/0123456789abcdef0123456789abcdef"
LABELS = Labels("art_1", "agent.researcher.1")
CONTENT = "Вывод: findings\n".encode() * 1000


def declared(content: bytes = CONTENT) -> Declared:
    return Declared(hashlib.sha256(content).hexdigest(), len(content))


KEY = object_key(declared().sha256, 1)


@pytest.fixture
def local(tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path, has_packs=False)


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    """Where a local upload lies; not there yet."""
    path = tmp_path / UPLOAD
    path.parent.mkdir(parents=True)
    return path


def stage(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def test_no_more_than_one_byte_beyond_the_declared_size_is_read() -> None:
    endless = io.BytesIO(b"x" * 5_000_000)

    with pytest.raises(ContentMismatch) as differs:
        copy_declared(endless.read, lambda _chunk: None, Declared("0" * 64, 1_000_000))

    assert endless.tell() == 1_000_001
    assert differs.value.details["staged_size_bytes"] == "more than 1000000"


async def test_an_object_is_read_only_and_has_one_name(local: LocalBlobs, staged: Path) -> None:
    stage(staged, CONTENT)

    await local.promote(UPLOAD, KEY, declared(), LABELS)

    found = (local.root / KEY).stat()
    assert stat.S_IMODE(found.st_mode) == 0o440
    assert found.st_nlink == 1
    assert not list((local.root / "objects/.tmp").iterdir())


def _symlink(staged: Path, secret: Path) -> None:
    staged.symlink_to(secret)


def _hard_link(staged: Path, secret: Path) -> None:
    os.link(secret, staged)


def _pipe(staged: Path, _secret: Path) -> None:
    os.mkfifo(staged)


def _device(staged: Path, _secret: Path) -> None:
    try:
        os.mknod(staged, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root may make a device")


def _folder(staged: Path, _secret: Path) -> None:
    staged.mkdir()


def _socket(staged: Path, _secret: Path) -> None:
    # The address of a socket is short, so it is bound from its own folder.
    here = os.open(".", os.O_RDONLY)
    os.chdir(staged.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(staged.name)
    finally:
        os.fchdir(here)
        os.close(here)


def _linked_owner(staged: Path, secret: Path) -> None:
    elsewhere = secret.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / staged.name).write_bytes(CONTENT)
    staged.parent.rmdir()
    staged.parent.symlink_to(elsewhere)


def _linked_staging(staged: Path, secret: Path) -> None:
    root = staged.parents[5]
    stage(staged, CONTENT)
    (root / "staging").rename(root / "elsewhere")
    (root / "staging").symlink_to(root / "elsewhere")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "trick",
    [_symlink, _hard_link, _pipe, _device, _folder, _socket, _linked_owner, _linked_staging],
    ids=lambda f: f.__name__,
)
async def test_only_a_plain_file_of_its_own_is_promoted(
    local: LocalBlobs, staged: Path, tmp_path: Path, trick: Callable[[Path, Path], None]
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    trick(staged, secret)

    with pytest.raises(NotAPlainFile):
        await local.promote(UPLOAD, KEY, declared(), LABELS)

    assert not (tmp_path / KEY).exists()


async def test_a_root_that_is_itself_a_link_is_the_operators_business(tmp_path: Path, staged: Path) -> None:
    stage(staged, CONTENT)
    (tmp_path / "link").symlink_to(tmp_path)

    await LocalBlobs(tmp_path / "link", has_packs=False).promote(UPLOAD, KEY, declared(), LABELS)

    assert (tmp_path / KEY).read_bytes() == CONTENT


async def test_a_file_where_a_folder_should_be_is_no_plain_upload(local: LocalBlobs, staged: Path) -> None:
    staged.parent.rmdir()
    staged.parent.write_bytes(CONTENT)

    with pytest.raises(NotAPlainFile):
        await local.promote(UPLOAD, KEY, declared(), LABELS)


async def test_an_open_writer_cannot_reach_the_published_object(local: LocalBlobs, staged: Path) -> None:
    with staged.open("wb", buffering=0) as writer:
        writer.write(CONTENT)
        await local.promote(UPLOAD, KEY, declared(), LABELS)
        writer.seek(0)
        writer.write(b"afterwards")

    assert (local.root / KEY).read_bytes() == CONTENT


async def test_whatever_a_writer_does_meanwhile_only_the_declared_bytes_are_published(
    local: LocalBlobs, staged: Path
) -> None:
    content = os.urandom(4_000_000)
    key = object_key(declared(content).sha256, 1)
    outcomes = set()

    for seed in range(12):
        stage(staged, content)
        stop = threading.Event()
        writer = threading.Thread(target=_scribble, args=(staged, content, seed, stop))
        writer.start()
        try:
            await local.promote(UPLOAD, key, declared(content), LABELS)
            outcomes.add("published")
        except Rejected as refusal:
            outcomes.add(type(refusal).__name__)
        finally:
            stop.set()
            writer.join()
        if (local.root / key).exists():
            assert (local.root / key).read_bytes() == content

    assert outcomes <= {"published", "ContentMismatch"}


def _scribble(path: Path, content: bytes, seed: int, stop: threading.Event) -> None:
    with path.open("r+b", buffering=0) as target:
        position = seed * 300_000
        while not stop.is_set():
            target.seek(position)
            target.write(bytes([content[position] ^ 1]))
            target.seek(position)
            target.write(bytes([content[position]]))
            position = (position + 65_537) % len(content)


async def test_promotions_of_the_same_bytes_at_once_publish_one_object(local: LocalBlobs, staged: Path) -> None:
    stage(staged, CONTENT)

    await asyncio.gather(*(local.promote(UPLOAD, KEY, declared(), LABELS) for _ in range(12)))

    assert (local.root / KEY).read_bytes() == CONTENT
    assert not list((local.root / "objects/.tmp").iterdir())


class Gated(LocalBlobs):
    """Promotes only once the event loop has let it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, has_packs=False)
        self.gate = threading.Event()

    def _write(self, staged: IO[bytes], temporary: int, part: str, declared: Declared) -> None:
        assert self.gate.wait(10), "the loop was blocked"
        super()._write(staged, temporary, part, declared)


async def test_the_loop_runs_on_while_bytes_are_copied(tmp_path: Path, staged: Path) -> None:
    stage(staged, CONTENT)
    gated = Gated(tmp_path)
    promoting = asyncio.create_task(gated.promote(UPLOAD, KEY, declared(), LABELS))

    asyncio.get_running_loop().call_soon(gated.gate.set)
    await promoting

    assert (tmp_path / KEY).exists()


async def test_copying_takes_constant_memory(local: LocalBlobs, staged: Path) -> None:
    size = 48 * 1024 * 1024
    with staged.open("wb") as target:
        target.truncate(size)
    digest = hashlib.sha256(bytes(size)).hexdigest()

    tracemalloc.start()
    began = time.monotonic()
    await local.promote(UPLOAD, object_key(digest, 1), Declared(digest, size), LABELS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8 * 1024 * 1024, f"{peak} bytes in {time.monotonic() - began:.1f} s"

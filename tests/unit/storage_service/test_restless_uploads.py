"""An agent goes on writing to what it has staged: what is published is what was hashed, or nothing is."""

import asyncio
import hashlib
import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mindbus.files.keys import object_key
from storage_service.blobs import Blobs, Declared, Labels
from storage_service.errors import ContentMismatch, NotAPlainFile, StagedFileMissing
from storage_service.local_blobs import LocalBlobs
from storage_service.local_folders import PLAIN, Folders, require_single_name
from storage_service.object_store import NO_LABELS
from storage_service.s3_blobs import S3Blobs
from storage_service.s3_objects import S3Objects
from tests.lax_objects import ALL
from tests.restless_writer import WAYS
from tests.seaweed import Place

pytestmark = pytest.mark.slow

UPLOAD = "staging/2026/03/14/agent_researcher/0123456789abcdef0123456789abcdef"
LABELS = Labels("art_1", "agent.researcher.1")
TRIES = 100


async def outcomes_of(blobs: Blobs, content: bytes, tries: int = TRIES) -> Counter[str]:
    """Of many tries, each under a key that nothing has yet; what is published is looked at as it lies there."""
    declared = Declared(hashlib.sha256(content).hexdigest(), len(content))
    outcomes = Counter[str]()
    for generation in range(1, tries + 1):
        key = object_key(declared.sha256, generation)
        try:
            await blobs.promote(UPLOAD, key, declared, LABELS)
            assert await blobs.digest(key) == declared
            outcomes["published"] += 1
        except (ContentMismatch, StagedFileMissing, NotAPlainFile) as no:
            assert await blobs.size_bytes(key) is None
            outcomes[type(no).__name__] += 1
    assert [found async for found in blobs.listing("objects/.tmp")] == []
    return outcomes


@contextmanager
def writing(way: str, path: Path, right: bytes, wrong: bytes) -> Iterator[None]:
    """By a process of its own."""
    files = {path: right, path.parent / "right": right, path.parent / "wrong": wrong}
    for file, content in files.items():
        file.write_bytes(content)
    command = [sys.executable, "-m", "tests.restless_writer", way, *map(str, files)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout
            assert writer.stdout.readline()
            yield
            assert writer.poll() is None, "it has given up"
        finally:
            writer.kill()


@pytest.mark.parametrize("way", [way for way in WAYS if way != "linking"])
async def test_to_a_file(tmp_path: Path, way: str, report: Callable[[str], None]) -> None:
    right, wrong = os.urandom(600_000), os.urandom(600_000)
    path = tmp_path / UPLOAD
    path.parent.mkdir(parents=True)

    with writing(way, path, right, wrong):
        outcomes = await outcomes_of(LocalBlobs(tmp_path), right)

    report(f"{way}: {dict(outcomes)}")
    assert outcomes["published"]
    assert outcomes["ContentMismatch"]
    assert not outcomes["NotAPlainFile"]
    assert not outcomes["StagedFileMissing"] or way in ("removing", "replacing")


async def test_a_link_that_comes_and_goes_is_never_taken_for_a_file(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    secret = b"what the agent could not read"
    path = tmp_path / UPLOAD
    path.parent.mkdir(parents=True)

    with writing("linking", path, secret, secret):
        outcomes = await outcomes_of(LocalBlobs(tmp_path), secret, TRIES)
        with Folders(tmp_path).holding(UPLOAD) as (folders, name):
            passed = sum(is_single(name, folders[-1]) for _ in range(400 * TRIES))

    report(f"linking: {dict(outcomes)}")
    assert not outcomes["published"]
    assert not passed


def is_single(name: str, folder: int) -> bool:
    """Whether a name passes for the only one of its file."""
    try:
        with os.fdopen(os.open(name, PLAIN, dir_fd=folder)) as staged:
            require_single_name(staged.fileno(), name, folder)
    except (FileNotFoundError, NotAPlainFile):
        return False
    return True


STORES = {
    "small": (ALL, 1024**2),
    "large": (ALL, -1),
    "large, copied aside": (replace(ALL, checks_sha256=False), -1),
}


@pytest.mark.parametrize("store", STORES)
async def test_to_an_object(s3_place: Place, store: str, report: Callable[[str], None]) -> None:
    right, wrong = os.urandom(50_000), os.urandom(50_000)
    files = s3_place.files()
    objects = S3Objects(s3_place.bucket())
    guarantees, whole_bytes = STORES[store]

    async def write_for_ever() -> None:
        for content in itertools.cycle((right, wrong, right, wrong[:-1], right, wrong + b"longer")):
            await asyncio.to_thread(files.put, UPLOAD, content)

    await objects.put(UPLOAD, wrong, NO_LABELS, if_absent=False)
    writing = asyncio.create_task(write_for_ever())
    outcomes = await outcomes_of(S3Blobs(objects, guarantees, whole_bytes), right, TRIES // 2)
    assert not writing.done()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)

    report(f"{store}: {dict(outcomes)}")
    assert set(outcomes) == {"published", "ContentMismatch"}

"""Where the file store is on the buffer's own disk, bytes are moved to staging: written once, lost never."""

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.storage import Registration
from mindbus.files.store import open_folder
from mindbus.sdk.access import FolderAccess
from mindbus.sdk.buffer import Buffer, BufferLimits
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import ArtifactRejected
from mindbus.testing.wait import until
from tests.clocks import NOON
from tests.sdk_kit import TRACE, Bench, FakeStorage

CONTENT = "Отчёт: 12 facts.\n".encode()
LONG_AGO = timedelta(days=3).total_seconds()


class Watcher(FakeStorage):
    """Looks around whenever it is asked, before it does anything."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.files)
        self.bench = bench
        self.seen: list[tuple[list[Path], list[Path]]] = []
        self.ages_s: list[float] = []

    async def register(self, manifest: Manifest) -> Registration:
        in_staging = staged(self.bench)
        self.seen.append((buffered(self.bench), in_staging))
        self.ages_s.extend(time.time() - path.stat().st_mtime for path in in_staging)
        return await super().register(manifest)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, moves=True)


def buffered(bench: Bench) -> list[Path]:
    return sorted(bench.buffer.glob("*/*.bytes"))


def staged(bench: Bench) -> list[Path]:
    return sorted(path for path in (bench.folder / "artifacts/staging").rglob("*") if path.is_file())


def watched(bench: Bench) -> Watcher:
    bench.storage = watcher = Watcher(bench)
    return watcher


async def test_while_storage_is_asked_the_bytes_lie_in_staging_alone(bench: Bench) -> None:
    storage = watched(bench)

    async with bench.artifacts() as artifacts:
        put = await artifacts.put(CONTENT, artifact_type="draft", trace=TRACE)
        assert await artifacts.get(put.ref.artifact_id) == CONTENT

    ((in_buffer, in_staging),) = storage.seen
    assert in_buffer == []
    assert len(in_staging) == 1
    assert bench.waiting() == []


@pytest.mark.parametrize(("folder", "file"), [(0o700, 0o600), (0o750, 0o640)])
@pytest.mark.parametrize("moves", [True, False])
async def test_staged_bytes_are_for_those_alone_who_may_enter_the_store(
    bench: Bench, moves: bool, folder: int, file: int
) -> None:
    bench.moves = moves
    (bench.folder / "artifacts").chmod(folder)
    modes: list[int] = []

    class Looking(FakeStorage):
        async def register(self, manifest: Manifest) -> Registration:
            modes.extend(path.stat().st_mode & 0o777 for path in staged(bench))
            return await super().register(manifest)

    bench.storage = Looking(bench.files)
    before = os.umask(0)
    try:
        async with bench.artifacts() as artifacts:
            await artifacts.put(CONTENT, artifact_type="draft", trace=TRACE)
            bench.storage.is_away = True
            await artifacts.put(b"Later.", artifact_type="draft", trace=TRACE)
    finally:
        os.umask(before)

    assert set(modes) == {file}
    assert {path.stat().st_mode & 0o777 for path in bench.buffer.rglob("*.json")} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in buffered(bench)} <= {0o600, file}
    assert {path.stat().st_mode & 0o777 for path in bench.buffer.rglob("*") if path.is_dir()} == {0o700}


async def test_what_has_to_wait_does_so_where_nobody_sweeps(bench: Bench) -> None:
    bench.storage.is_away = True

    async with bench.artifacts() as artifacts:
        put = await artifacts.put(CONTENT, artifact_type="draft", trace=TRACE)
        assert put.is_pending
        assert [path.read_bytes() for path in buffered(bench)] == [CONTENT]
        assert staged(bench) == []


async def test_an_agent_that_is_stopped_while_it_asks_takes_its_bytes_back(bench: Bench) -> None:
    asked = asyncio.Event()

    class Silent(FakeStorage):
        async def register(self, manifest: Manifest) -> Registration:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError("unreachable: it waits for ever")

    bench.storage = Silent(bench.files)
    async with bench.artifacts() as artifacts:
        putting = asyncio.create_task(artifacts.put(CONTENT, artifact_type="draft", trace=TRACE))
        await asked.wait()
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting

    assert [path.read_bytes() for path in buffered(bench)] == [CONTENT]
    assert staged(bench) == []


async def test_what_has_waited_for_long_is_not_taken_for_abandoned_when_it_is_staged(bench: Bench) -> None:
    bench.storage.is_away = True
    async with bench.artifacts() as artifacts:
        await artifacts.put(CONTENT, artifact_type="draft", trace=TRACE)
    (path,) = buffered(bench)
    written = path.stat().st_mtime
    os.utime(path, (written - LONG_AGO, written - LONG_AGO))
    storage = watched(bench)

    async with bench.artifacts():
        await until(lambda: storage.ages_s)

    assert max(storage.ages_s) < LONG_AGO / 2


@pytest.mark.parametrize("orphans", ["artifacts/orphans", "orphans"])
async def test_what_was_swept_up_while_nobody_was_here_is_brought_back(bench: Bench, orphans: str) -> None:
    key = await _died_after_staging(bench)
    swept = bench.folder / orphans / "2026-03-15" / key
    swept.parent.mkdir(parents=True)
    (bench.folder / "artifacts" / key).rename(swept)

    async with bench.artifacts() as heir:
        await until(lambda: not bench.waiting())
        assert await heir.get("art_1") == CONTENT
    assert not swept.exists()


async def test_what_is_lost_is_said_to_be_lost(bench: Bench) -> None:
    key = await _died_after_staging(bench)
    (bench.folder / "artifacts" / key).unlink()

    async with bench.artifacts():
        await until(lambda: not bench.waiting())

    assert bench.set_aside() == ["art_1"]
    assert "staged 3 times" in (bench.buffer / "failed" / "art_1.reason.txt").read_text()


async def test_what_storage_has_already_need_not_be_here(bench: Bench) -> None:
    async with bench.artifacts() as artifacts:
        put = await artifacts.put(CONTENT, artifact_type="draft", trace=TRACE, artifact_id="art_1")
    key = await _died_after_staging(bench)
    (bench.folder / "artifacts" / key).unlink()

    async with bench.artifacts():
        await until(lambda: not bench.waiting())

    assert bench.set_aside() == []
    assert bench.storage.manifests["art_1"].ref == put.ref


async def test_what_storage_refuses_keeps_its_bytes(bench: Bench) -> None:
    bench.storage.refuses.add("art_bad")
    async with bench.artifacts() as artifacts:
        with pytest.raises(ArtifactRejected):
            await artifacts.put(CONTENT, artifact_type="draft", trace=TRACE, artifact_id="art_bad")

    assert (bench.buffer / "failed" / "art_bad.bytes").read_bytes() == CONTENT
    assert staged(bench) == []


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is only one disk here")
    with TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


async def test_from_another_disk_bytes_are_copied(bench: Bench, other_disk: Path) -> None:
    source = other_disk / "art_1.bytes"
    source.write_bytes(CONTENT)
    entry = _entry(bench)
    access = FolderAccess(open_folder(bench.files.url), bench.folder / "artifacts")

    await access.stage(entry, source)

    assert [path.read_bytes() for path in staged(bench)] == [CONTENT]
    assert source.read_bytes() == CONTENT
    await access.shelter(entry, source)
    await access.unstage(entry)
    assert staged(bench) == []
    assert source.read_bytes() == CONTENT


async def _died_after_staging(bench: Bench) -> str:
    """What a process leaves that was killed right after it moved the bytes; where they are staged."""
    buffer = Buffer(bench.folder / "buffer", "agent.researcher", BufferLimits())
    buffer.open()
    incoming = buffer.begin()
    incoming.write(CONTENT)
    entry = incoming.finish(lambda _sha256, _size_bytes: _entry(bench))
    access = FolderAccess(bench.files, bench.folder / "artifacts")
    await access.stage(entry, buffer.bytes_of(entry))
    buffer.close()
    return entry.upload_key


def _entry(bench: Bench) -> BufferEntry:
    key = "staging/2026/03/14/agent_researcher/" + "a" * 32
    manifest = {
        "id": "art_1",
        "trace_id": TRACE,
        "created_by": "agent.researcher.1",
        "created_at": NOON,
        "artifact_type": "draft",
        "content_type": "text/plain",
        "uri": bench.files.uri(key),
        "size_bytes": len(CONTENT),
        "checksum": f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
        "owner": "agent.researcher",
    }
    return BufferEntry.model_validate({"manifest": manifest, "upload_key": key, "buffered_at": NOON})

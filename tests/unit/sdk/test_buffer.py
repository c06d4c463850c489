"""The buffer survives a crash anywhere, has one writer, hands over what the dead have left."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from mindbus.files.disk import Disk
from mindbus.sdk.artifacts import Artifacts
from mindbus.sdk.buffer import Buffer, BufferLimits
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.testing.wait import until
from tests.clocks import NOON
from tests.sdk_kit import TRACE, Bench


class Crashed(BaseException):
    """The process is gone; nothing that it would still have done is done."""


class BrittleDisk(Disk):
    """Counts effects; dies before the one it is told, or right after it, and never does anything again."""

    def __init__(self, dies_at: int | None = None, *, after: bool = False) -> None:
        self.dies_at, self.after = dies_at, after
        self.effects: list[str] = []

    def make_folder(self, path: Path) -> None:
        self._do("make_folder", lambda: super(BrittleDisk, self).make_folder(path))

    def sync(self, file: IO[bytes]) -> None:
        self._do("sync", lambda: super(BrittleDisk, self).sync(file))

    def publish(self, part: Path, final: Path) -> None:
        self._do("publish", lambda: super(BrittleDisk, self).publish(part, final))

    def save(self, path: Path, content: bytes) -> None:
        self._do("save", lambda: super(BrittleDisk, self).save(path, content))

    def move(self, path: Path, folder: Path) -> None:
        self._do("move", lambda: super(BrittleDisk, self).move(path, folder))

    def remove(self, path: Path) -> None:
        self._do("remove", lambda: super(BrittleDisk, self).remove(path))

    def _do(self, name: str, effect: Callable[[], None]) -> None:
        at = len(self.effects)
        if self.dies_at is not None and (at > self.dies_at or (at == self.dies_at and not self.after)):
            raise Crashed(name)
        self.effects.append(name)
        effect()
        if self.dies_at == at:
            raise Crashed(name)


class SlowDisk(Disk):
    """Takes as long as it is told to remove bytes."""

    def __init__(self) -> None:
        self.removing, self.goes_on = threading.Event(), threading.Event()

    def remove(self, path: Path) -> None:
        if path.suffix == ".bytes":
            self.removing.set()
            self.goes_on.wait(10)
        super().remove(path)


def an_entry(bench: Bench, artifact_id: str = "art_1") -> Callable[[str, int], BufferEntry]:
    def describe(sha256: str, size_bytes: int) -> BufferEntry:
        key = "staging/2026/03/14/agent_researcher/" + "a" * 32
        manifest = {
            "id": artifact_id,
            "trace_id": TRACE,
            "created_by": "agent.researcher.1",
            "created_at": NOON,
            "artifact_type": "draft",
            "content_type": "text/plain",
            "uri": bench.files.uri(key),
            "size_bytes": size_bytes,
            "checksum": f"sha256:{sha256}",
            "owner": "agent.researcher",
        }
        return BufferEntry.model_validate({"manifest": manifest, "upload_key": key, "buffered_at": NOON})

    return describe


def opened(bench: Bench, disk: Disk | None = None) -> Buffer:
    buffer = Buffer(bench.folder / "buffer", "agent.researcher", BufferLimits(), disk)
    buffer.open()
    return buffer


def kept(buffer: Buffer, bench: Bench, content: bytes = b"text", artifact_id: str = "art_1") -> BufferEntry:
    incoming = buffer.begin()
    try:
        incoming.write(content)
        return incoming.finish(an_entry(bench, artifact_id))
    except BaseException:
        incoming.abandon()
        raise


def a_life(bench: Bench, disk: Disk) -> Iterator[str]:
    """Every kind of thing that a buffer does, saying how far it has come."""
    buffer = opened(bench, disk)
    try:
        kept(buffer, bench, b"first", "art_first")
        yield "first kept"
        kept(buffer, bench, b"second", "art_second")
        yield "second kept"
        buffer.save(buffer.entry("art_second").model_copy(update={"upload_key": "staging/anew"}))
        buffer.drop("art_first")
        yield "first dropped"
        buffer.set_aside("art_second", "refused")
        yield "second set aside"
    except Crashed:
        release(buffer)
        raise
    release(buffer)


def release(buffer: Buffer) -> None:
    """What the kernel does for a dead process: its locks are gone."""
    for folder in (buffer._own, *buffer._adopted):
        if folder is not None:
            folder.unlock()


def test_a_crash_before_or_after_any_effect_loses_nothing_that_was_kept(bench: Bench) -> None:
    rehearsal = BrittleDisk()
    assert list(a_life(bench, rehearsal))[-1] == "second set aside"
    assert {"publish", "save", "remove", "move", "sync"} <= set(rehearsal.effects)

    for at in range(len(rehearsal.effects)):
        for after in (False, True):
            shutil.rmtree(bench.folder / "buffer")
            reached = ["nothing"]
            with pytest.raises(Crashed):
                reached.extend(a_life(bench, BrittleDisk(at, after=after)))

            heir = opened(bench)
            waiting = {entry.artifact_id: heir.bytes_of(entry).read_bytes() for entry in heir.entries()}
            heir.close()

            where = f"{'after' if after else 'before'} effect {at}, {rehearsal.effects[at]}; reached: {reached[-1]}"
            assert waiting.items() <= {"art_first": b"first", "art_second": b"second"}.items(), where
            if reached[-1] in ("first kept", "second kept") and not _dropping(bench, waiting):
                assert "art_first" in waiting, where
            if reached[-1] in ("second kept", "first dropped"):
                assert "art_second" in waiting or bench.set_aside() == ["art_second"], where
            if reached[-1] in ("first dropped", "second set aside"):
                assert "art_first" not in waiting, where
            assert not [path for path in bench.leftovers() if "failed" not in path], where


def _dropping(bench: Bench, waiting: dict[str, bytes]) -> bool:
    """Whether the crash fell into dropping the first: then it may be there still, or be gone."""
    return "art_second" in waiting


def test_a_buffer_folder_has_one_writer(bench: Bench) -> None:
    first = opened(bench)
    kept(first, bench)

    second = opened(bench)

    assert second.entries() == []
    assert [entry.artifact_id for entry in first.entries()] == ["art_1"]
    second.close()
    first.close()


def test_a_living_instance_adopts_what_a_dead_one_left(bench: Bench) -> None:
    living, dying = opened(bench), opened(bench)
    kept(dying, bench, b"legacy")
    living.adopt()
    assert living.entries() == []

    dying.close()
    living.adopt()

    (entry,) = living.entries()
    assert living.bytes_of(entry).read_bytes() == b"legacy"
    living.drop(entry.artifact_id)
    living.close()
    assert [path.name for path in bench.buffer.iterdir()] == []


def test_a_closed_buffer_whose_thread_comes_late_takes_nothing_from_the_living(bench: Bench) -> None:
    dead, late = opened(bench), opened(bench)
    kept(dead, bench)
    late.close()
    release(dead)

    late.adopt()

    assert [entry.artifact_id for entry in opened(bench).entries()] == ["art_1"]


def test_half_received_bytes_are_swept_and_damaged_entries_set_aside(bench: Bench) -> None:
    dead = bench.buffer / "dead"
    dead.mkdir(parents=True)
    (dead / "1234.part").write_bytes(b"half")
    (dead / "art_lone.bytes").write_bytes(b"no entry")
    (dead / "art_odd.json").write_text("{not json")
    (dead / "art_odd.bytes").write_bytes(b"whatever")
    whole = an_entry(bench, "art_short")("0" * 64, 10)
    (dead / "art_short.json").write_text(whole.model_dump_json())
    (dead / "art_short.bytes").write_bytes(b"short")

    buffer = opened(bench)

    assert buffer.entries() == []
    assert bench.set_aside() == ["art_odd", "art_short"]
    assert (bench.buffer / "failed" / "art_odd.bytes").read_bytes() == b"whatever"
    assert "not 10" in (bench.buffer / "failed" / "art_short.reason.txt").read_text()
    assert not dead.exists()
    buffer.close()


async def test_a_redelivered_step_finds_what_its_dead_instance_kept(bench: Bench) -> None:
    dying = opened(bench)
    kept(dying, bench, b"paid for", "art_step")
    bench.storage.is_away = True

    async with bench.artifacts() as artifacts:
        assert await _find_or_none(artifacts) is None
        dying.close()

        found = await artifacts.find("art_step", trace=TRACE)

        assert found is not None
        assert found.is_pending
        bench.storage.is_away = False
        await until(lambda: _beat_and_look(bench, artifacts))
        registered = await artifacts.find("art_step", trace=TRACE)
        assert registered is not None
        assert registered.outcome == "already_exists"


async def _find_or_none(artifacts: Artifacts) -> object:
    return artifacts._buffer.get("art_step")


async def _beat_and_look(bench: Bench, artifacts: Artifacts) -> bool:
    await bench.beat()
    return "art_step" in bench.storage.manifests and await _find_or_none(artifacts) is None


def test_what_is_being_dropped_is_gone_when_the_buffer_is_closed(bench: Bench) -> None:
    disk = SlowDisk()
    buffer = opened(bench, disk)
    kept(buffer, bench, b"registered", "art_step")
    dropping, closing = threading.Thread(target=buffer.drop, args=("art_step",)), threading.Thread(target=buffer.close)
    dropping.start()
    disk.removing.wait(10)
    closing.start()
    closing.join(0.2)
    is_patient = closing.is_alive()
    disk.goes_on.set()
    dropping.join(10)
    closing.join(10)

    assert is_patient
    assert bench.leftovers() == []

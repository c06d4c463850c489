import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from mindbus.health import is_alive
from mindbus.testing.wait import until
from mindbus_fleet.supervision.children import Child, Group, Launch, rotate_logs, tail

Start = Callable[..., Child]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "worker.log"


@pytest.fixture
def start(tmp_path: Path, log: Path) -> Iterator[Start]:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)

    def started(script: str, changed: Callable[[], object] = lambda: None) -> Child:
        launch = Launch(["sh", "-c", script], {"PATH": os.environ["PATH"]}, lock, log)
        child = Child(Group("worker", ("worker",)), launch, changed)
        child.start()
        return child

    yield started
    os.close(lock)


@pytest.mark.slow
async def test_who_dies_comes_back_a_little_later_each_time(start: Start, log: Path) -> None:
    with structlog.testing.capture_logs() as said:
        child = start("echo born; exit 3")
        await until(lambda: child.deaths == 3, 20)
        await child.stop(1)

    deaths = [(line["exit"], line["in_s"]) for line in said if line["event"] == "worker died, restarting"]
    assert deaths == [(3, 0.5), (3, 1.0), (3, 2.0)]
    assert tail(log, 9).splitlines() == ["born"] * 3


async def test_who_is_told_to_stop_stays_dead(start: Start) -> None:
    child = start("exec sleep 60")
    await until(lambda: child.pid)
    pid = child.pid
    assert pid is not None

    await child.stop(5)

    assert child.pid is None
    assert child.deaths == 0
    assert not is_alive(pid)


async def test_who_does_not_stop_in_time_is_killed(start: Start, log: Path) -> None:
    child = start("trap '' TERM; echo deaf; while :; do sleep 1; done")
    await until(lambda: "deaf" in tail(log, 1))

    await child.stop(0.1)

    assert child.pid is None


async def test_who_cannot_be_started_is_started_once_that_is_mended(start: Start, log: Path) -> None:
    log.parent.write_text("no folder")
    child = start("exec sleep 60")
    await until(lambda: child.deaths == 1)

    log.parent.unlink()

    await until(lambda: child.pid)
    await child.stop(5)


async def test_who_dies_while_the_disk_is_full_comes_back(start: Start, tmp_path: Path) -> None:
    state = tmp_path / "no folder" / "up.json"
    child = start("exec sleep 60", lambda: state.write_text("running"))
    await until(lambda: child.pid)
    first = child.pid

    child.kill()

    await until(lambda: child.pid not in (None, first))
    assert child.deaths == 1
    await child.stop(5)


def asking(how: str) -> str:
    """A worker that asks a model and does not come back."""
    code = f"""
import os, time
from mindbus.worker_host import show_stacks

def ask_a_model():
    print("asking", flush=True)
    {how}

show_stacks()
ask_a_model()
"""
    return f"exec {sys.executable} -c '{code}'"


async def test_who_blocks_its_loop_leaves_word_of_where(
    start: Start, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindbus_fleet.supervision.children._STACKS_S", 2.0)
    child = start(asking("time.sleep(60)"))
    await until(lambda: "asking" in tail(log, 1), 30)

    await child.end_frozen()

    await until(lambda: child.deaths)
    assert "in ask_a_model" in tail(log, 9)
    await child.stop(5)


async def test_who_crashes_leaves_word_of_where(start: Start, log: Path) -> None:
    child = start(asking("os.abort()"))
    await until(lambda: child.deaths, 30)

    assert "in ask_a_model" in tail(log, 99)
    await child.stop(5)


async def test_silence_is_counted_look_by_look_until_the_next_sign(start: Start) -> None:
    child = start("exec sleep 60")
    await until(lambda: child.pid)

    assert [child.silent_s(sign, 1.0) for sign in (0, 0, 0, 7.5, 7.5, 8, 8)] == [0, 1, 2, 0, 1, 0, 1]
    await child.stop(5)


def test_a_log_that_has_grown_large_begins_anew_under_whoever_writes_to_it(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with log.open("ab") as writer:
        writer.write(b"early\n" * 2_000_000)
        writer.flush()
        rotate_logs(tmp_path)
        writer.write(b"late\n")

    assert log.read_bytes() == b"late\n"
    assert tail(tmp_path / "worker.log.1", 1) == "early"


def test_a_tail_has_the_last_lines_of_the_part_that_counts(tmp_path: Path) -> None:
    log = tmp_path / "up.log"
    log.write_text("earlier\n")
    began = log.stat().st_size
    log.write_text("earlier\none\ntwo\nthree\n")

    assert tail(log, 2) == "two\nthree"
    assert tail(log, 9, began) == "one\ntwo\nthree"
    assert tail(tmp_path / "nothing", 9) == ""

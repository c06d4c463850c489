import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

import pytest

from bus_schema.fleet import State
from config.settings import FleetSettings
from mindbus.health import HealthFolder, WorkerUnhealthy, is_alive
from mindbus.management import QueueState
from mindbus.testing.wait import eventually
from mindbus_fleet.cli.service_checks import dialogue_queues
from tests.small_disks import small_disk_at


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def settings(tmp_path: Path) -> FleetSettings:
    return FleetSettings(data_dir=tmp_path, heartbeat_s=5)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(settings: FleetSettings, clock: Clock) -> HealthFolder:
    return HealthFolder(settings, clock)


def test_a_worker_that_says_it_is_ready_is_well(health: HealthFolder) -> None:
    health.report("storage", State.READY)

    assert health.require("storage").pid == os.getpid()


def test_a_worker_is_well_for_three_heartbeats(health: HealthFolder, clock: Clock) -> None:
    health.report("storage", State.READY)

    clock.now += timedelta(seconds=15)
    health.require("storage")
    clock.now += timedelta(seconds=1)
    with pytest.raises(WorkerUnhealthy, match="storage has been silent for 16 s"):
        health.require("storage")


def test_a_worker_without_its_queues_is_unwell(health: HealthFolder) -> None:
    health.report("storage", State.UNREADY)

    with pytest.raises(WorkerUnhealthy, match="does not consume"):
        health.require("storage")


def test_a_worker_that_never_ran_here_is_unwell(health: HealthFolder) -> None:
    health.report("orchestrator", State.READY)

    with pytest.raises(WorkerUnhealthy, match="storage does not run on this host"):
        health.require("storage")


def test_a_dead_process_is_unwell_however_fresh_its_word(health: HealthFolder, tmp_path: Path) -> None:
    said_by_the_dead(health, tmp_path)

    with pytest.raises(WorkerUnhealthy, match="has died"):
        health.require("storage")


def test_the_dead_say_why_they_could_not_run(health: HealthFolder, tmp_path: Path) -> None:
    said_by_the_dead(health, tmp_path, note="storage.db is damaged")

    with pytest.raises(WorkerUnhealthy, match=r"has died: storage\.db is damaged"):
        health.require("storage")

    health.keep_reason("storage", "still damaged")
    assert [found.note for found in health.all_here()] == ["still damaged"]


def test_one_well_worker_of_several_is_enough(health: HealthFolder, tmp_path: Path) -> None:
    said_by_the_dead(health, tmp_path)
    health.report("storage", State.READY)

    assert health.require("storage").pid == os.getpid()


def test_a_worker_whose_name_begins_alike_is_another(health: HealthFolder) -> None:
    health.report("storage2", State.READY)

    with pytest.raises(WorkerUnhealthy):
        health.require("storage")


def test_what_the_dead_leave_is_swept(health: HealthFolder, tmp_path: Path) -> None:
    said_by_the_dead(health, tmp_path)
    health.report("orchestrator", State.READY)

    health.sweep()

    assert [found.name for found in health.all_here()] == ["orchestrator"]


def test_a_queue_is_not_silent_whose_worker_here_says_that_it_consumes(health: HealthFolder, tmp_path: Path) -> None:
    queues = [QueueState(f"mb.q.{name}", 0, 0, 0, "running", {}) for name in ("dialogue", "history")]
    said_by_the_dead(health, tmp_path)
    health.report("dialogue", State.READY)
    health.report("history", State.UNREADY)

    found = dialogue_queues(queues, health.consuming())

    assert (found.status, "mb.q.dialogue" in found.detail) == ("warning", False)
    assert "mb.q.storage, mb.q.context, mb.q.history, mb.q.task_manager.events" in found.detail


def test_who_stops_is_forgotten(health: HealthFolder) -> None:
    health.report("storage", State.READY)
    health.forget("storage")

    assert health.all_here() == []


def test_a_file_cut_short_is_nobodys_word(health: HealthFolder, tmp_path: Path) -> None:
    health.report("storage", State.READY)
    for file in (tmp_path / "run" / "health").iterdir():
        file.write_text('{"name": "sto')

    with pytest.raises(WorkerUnhealthy):
        health.require("storage")


def said_by_the_dead(health: HealthFolder, tmp_path: Path, note: str = "") -> None:
    health.report("storage", State.UNREADY if note else State.READY, note)
    (file,) = (tmp_path / "run" / "health").glob("storage@*.json")
    gone = subprocess.Popen(["true"])
    gone.wait()
    said = file.read_text().replace(f'"pid":{os.getpid()}', f'"pid":{gone.pid}')
    file.with_name(file.name.replace(f".{os.getpid()}.", f".{gone.pid}.")).write_text(said)
    file.unlink()


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process may open none meanwhile."""
    before = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        setrlimit(RLIMIT_NOFILE, before)


def test_who_may_open_no_more_files_gives_no_sign_and_is_started_anew(health: HealthFolder, tmp_path: Path) -> None:
    health.report("storage", State.READY)
    (file,) = (tmp_path / "run" / "health").glob("storage@*.json")
    os.utime(file, (1, 1))
    with no_more_files(), pytest.raises(OSError, match="Too many open files"):
        health.report("storage", State.READY)
    assert health.last_sign(os.getpid()) == 1


def test_who_writes_to_a_full_disk_gives_a_sign_and_stays(tmp_path: Path, clock: Clock) -> None:
    with small_disk_at(tmp_path / "disk", 1) as disk:
        health = HealthFolder(FleetSettings(data_dir=disk.folder), clock)
        health.report("storage", State.READY)
        (file,) = (disk.folder / "run" / "health").glob("storage@*.json")
        os.utime(file, (1, 1))
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            health.report("storage", State.READY)
        assert health.last_sign(os.getpid()) > 1


def test_a_standby_is_well(health: HealthFolder) -> None:
    health.report("storage", State.STANDING_BY)
    assert health.require("storage").state is State.STANDING_BY


def test_a_process_that_has_ended_is_dead_before_its_parent_notices() -> None:
    child = subprocess.Popen(["true"])

    eventually(lambda: not is_alive(child.pid), 20, "it has ended")

    assert child.wait() == 0
    assert is_alive(os.getpid())

import os
import subprocess
from pathlib import Path
from threading import Timer

import pytest

from config.settings import FleetSettings
from mindbus_fleet.supervision import run_folder
from mindbus_fleet.supervision.run_folder import AlreadyUp, OrphansRemain, RunFolder, UpState, WorkerProcess


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(FleetSettings(data_dir=tmp_path))


@pytest.mark.slow
def test_one_up_at_a_time(folder: RunFolder) -> None:
    assert not folder.is_taken()
    lock = folder.take()

    assert folder.is_taken()
    with pytest.raises(AlreadyUp, match=rf"mindbus down.*process {os.getpid()}"):
        folder.take()

    os.close(lock)
    assert not folder.is_taken()


def test_what_is_just_being_killed_is_waited_for(folder: RunFolder) -> None:
    lock = folder.take()
    ending = Timer(0.1, os.close, [lock])
    ending.start()

    os.close(folder.take())
    ending.join()


def kill_supervisor(folder: RunFolder) -> int:
    """A lock that workers hold whose supervisor has died."""
    lock = folder.take()
    dead = subprocess.Popen(["true"])
    dead.wait()
    (folder.root / "up.lock").write_text(str(dead.pid), encoding="ascii")
    worker = WorkerProcess(name="storage", pid=os.getpid(), workers=("storage",))
    folder.write_state(UpState(pid=dead.pid, status="ready", data_dir="x", workers=(worker,)))
    return lock


@pytest.mark.slow
def test_the_workers_of_a_dead_supervisor_are_waited_for(folder: RunFolder) -> None:
    lock = kill_supervisor(folder)
    notices: list[str] = []
    ending = Timer(2, os.close, [lock])
    ending.start()

    folder.require_free(on_wait=lambda: notices.append("waiting"))

    assert notices == ["waiting"]
    ending.join()


def test_workers_of_a_dead_supervisor_that_do_not_end_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "_ORPHANS_MARGIN_S", 0.1)
    folder = RunFolder(FleetSettings(data_dir=tmp_path, drain_s=0.1))
    lock = kill_supervisor(folder)

    with pytest.raises(OrphansRemain, match=rf"(?s)supervisor .* has died.*worker processes {os.getpid()}"):
        folder.require_free()

    os.close(lock)


def test_what_a_killed_fleet_has_left_is_removed_unless_one_runs(folder: RunFolder) -> None:
    lock = kill_supervisor(folder)
    folder.forget_killed()
    assert folder.state() is not None

    os.close(lock)
    folder.forget_killed()
    assert [file.name for file in folder.root.rglob("*") if file.is_file()] == ["up.lock"]


def test_the_lock_is_held_until_the_last_who_inherited_it_is_gone(folder: RunFolder) -> None:
    lock = folder.take()
    inherited = os.dup(lock)

    os.close(lock)
    assert folder.is_taken()

    os.close(inherited)
    assert not folder.is_taken()


def test_what_up_says_of_itself_is_private(folder: RunFolder) -> None:
    folder.write_state(UpState(pid=1, status="ready", data_dir="x", password="secret"))

    assert (folder.root / "up.json").stat().st_mode & 0o777 == 0o600
    state = folder.state()
    assert state is not None
    assert state.password == "secret"

    folder.forget()
    assert folder.state() is None

import os
from pathlib import Path
from threading import Timer

import pytest

from config.settings import FleetSettings
from mindbus_fleet.supervision.run_folder import AlreadyUp, RunFolder, UpState


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

    folder.forget_state()
    assert folder.state() is None

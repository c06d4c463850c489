import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from config.settings import FleetSettings
from mindbus.run_dir import lock_path
from mindbus.running_fleets import register_fleet, running_fleets, unregister_fleet

LOOKS = 2_000
COMES_AND_GOES = """
import os, sys
link, data_dir = sys.argv[1:]
print("starts", flush=True)
while True:
    os.symlink(data_dir, link)
    os.unlink(link)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of links of a user with a home of their own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "mindbus" / "fleets"


def holding(data_dir: Path, process: int) -> Path:
    """A data folder whose lock that process holds."""
    lock = lock_path(data_dir / "run")
    lock.parent.mkdir(parents=True)
    lock.write_text(str(process), encoding="ascii")
    return data_dir


@contextmanager
def another_comes_and_goes(link: Path, data_dir: Path) -> Iterator[None]:
    """Another fleet is noted and its note removed, over and over, until the block ends."""
    process = subprocess.Popen([sys.executable, "-c", COMES_AND_GOES, str(link), str(data_dir)], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def test_a_fleet_is_found_while_another_ends(folder: Path, tmp_path: Path) -> None:
    ours = holding(tmp_path / "ours", os.getpid())
    register_fleet(FleetSettings(data_dir=ours))
    another = holding(tmp_path / "another", os.getppid())

    with another_comes_and_goes(folder / str(os.getppid()), another):
        assert all(ours in running_fleets() for _ in range(LOOKS))


def test_a_fleet_that_has_ended_is_not_found_and_its_link_goes_with_the_next_start(
    folder: Path, tmp_path: Path
) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    link = folder / ended.stdout.decode().strip()
    folder.mkdir(parents=True)
    link.symlink_to(holding(tmp_path / "ended", int(link.name)))
    assert running_fleets() == []

    register_fleet(FleetSettings(data_dir=holding(tmp_path / "ours", os.getpid())))
    assert (running_fleets(), link.is_symlink()) == ([tmp_path / "ours"], False)

    unregister_fleet()
    assert running_fleets() == []


def test_a_process_that_has_another_ones_id_is_no_fleet(folder: Path, tmp_path: Path) -> None:
    register_fleet(FleetSettings(data_dir=holding(tmp_path / "data", os.getppid())))

    assert running_fleets() == []

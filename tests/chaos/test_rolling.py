"""Every process of a fleet is replaced, one after the other, while users work; also by newer code."""

import asyncio
import io
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from importlib.metadata import distributions
from pathlib import Path

import pytest

from mindbus_fleet.cli.upgrade import in_order
from tests.chaos.replicas import ALL_KINDS, Fleet, Life, fleet_and_life
from tests.chaos.talker import Talker, well_ended
from tests.chaos.testbed import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.rabbit, pytest.mark.backends]

# Three days and some 400 commits before this test.
_OLDER = "ac21afb6"
_FEW = ("storage", "history", "lsm", "orchestrator", "critic", "dialogue")


@pytest.mark.timeout(900)
async def test_a_fleet_is_restarted_worker_by_worker(tmp_path: Path) -> None:
    async with fleet_and_life(tmp_path, workers=_FEW, kinds=("process", "dialogue", "recording")) as (fleet, life):
        await _roll(fleet, life)


@pytest.mark.proof
@pytest.mark.timeout(3600)
async def test_a_fleet_of_older_wheels_is_replaced_worker_by_worker(tmp_path: Path) -> None:
    code = await asyncio.to_thread(_wheels, tmp_path / "older")
    (older,) = [each for each in distributions(path=[str(code)]) if each.metadata["Name"] == "mindbus-fleet"]
    workers = {each.name for each in older.entry_points if each.group == "mindbus.workers"}
    async with fleet_and_life(tmp_path, workers=workers, kinds=ALL_KINDS, code=code) as (fleet, life):
        await _roll(fleet, life)


async def _roll(fleet: Fleet, life: Life) -> None:
    """Replace each process while somebody talks, and look at what has become of everything."""
    talker = Talker(life)
    async with talker.talking():
        await _replace_each(fleet, life)
    print(await well_ended(life, talker))


async def _replace_each(fleet: Fleet, life: Life) -> None:
    """Receivers before senders."""
    print(f"goes on in {await life.goes_on():.1f} s before")
    for name in in_order(fleet.replicas):
        began = time.monotonic()
        for replica in fleet.replicas[name]:
            await asyncio.to_thread(replica.end, signal.SIGTERM)
            replica.code = None
            replica.start()
            await replica.well()
        replaced = time.monotonic() - began
        print(f"{name}: replaced in {replaced:.1f} s, all goes on in {await life.goes_on():.1f} s")


def _wheels(folder: Path) -> Path:
    """A folder with the wheels of the older code, unpacked as pip does it."""
    archive = subprocess.run(["git", "archive", _OLDER], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        tree.extractall(folder / "source", filter="data")
    uv, target = (sys.executable, "-m", "uv"), folder / "installed"
    for project in (folder / "source", folder / "source" / "mindbus_fleet"):
        build = ("build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", folder / "dist", project)
        subprocess.run([*uv, *build], check=True, cwd="/")
    install = ("pip", "install", "--quiet", "--no-deps", "--target", target, "--python", sys.executable)
    subprocess.run([*uv, *install, *(folder / "dist").glob("*.whl")], check=True, cwd="/")
    shutil.rmtree(folder / "source")
    where = (sys.executable, "-c", "import mindbus_fleet, mindbus, workers; print(mindbus.__file__, workers.__file__)")
    imported = subprocess.run(
        where, check=True, cwd="/", env={"PYTHONPATH": str(target)}, capture_output=True, text=True
    )
    assert all(file.startswith(str(target)) for file in imported.stdout.split())
    return target

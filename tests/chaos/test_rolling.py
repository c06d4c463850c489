"""Every process of a fleet is replaced, one after the other, while users work; also by newer code."""

import asyncio
import io
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path

import pytest

from bus_schema.conversations import GetMessages
from bus_schema.dialogue import Invoke, conversation_trace
from mindbus import BusUnavailable, Unroutable
from mindbus.testing.wait import until
from mindbus_fleet.cli.upgrade import in_order
from tests.chaos.replicas import ALL_KINDS, GOES_ON_WITHIN_S, Fleet, Life, fleet_and_life
from tests.chaos.testbed import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.rabbit, pytest.mark.backends]

# Three days and some 400 commits before this test.
_OLDER = "ac21afb6"
_FEW = ("storage", "history", "lsm", "orchestrator", "critic", "dialogue")
_TALKER = "u_rolling"
_SAID_EVERY_S = 1.0


class Talker:
    """Somebody who talks without waiting for answers."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.said: list[str] = []

    async def talk(self) -> None:
        while True:
            text = f"This is sentence {len(self.said)}."
            await self._say(Invoke(user_id=_TALKER, message=text, message_id=f"msg_rolling_{len(self.said)}"))
            self.said.append(text)
            await asyncio.sleep(_SAID_EVERY_S)

    async def _say(self, said: Invoke) -> None:
        while True:
            try:
                await self._life.bus.send(said, trace=conversation_trace(_TALKER), message_id=f"op_{said.message_id}")
            except (BusUnavailable, Unroutable):
                continue
            return

    async def heard(self) -> list[tuple[str, str]]:
        """What is kept of the talk, roles and texts, in order."""
        found: list[tuple[str, str]] = []
        query = GetMessages(user_id=_TALKER, limit=200)
        while True:
            page = await self._life.bus.request(query)
            found += [(each.role, each.content or "") for each in page.items]
            if page.next_cursor is None:
                return found
            query = query.model_copy(update={"cursor": page.next_cursor})

    async def is_answered(self) -> bool:
        return len(await self.heard()) >= 2 * len(self.said)


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
    talking = asyncio.create_task(talker.talk())
    try:
        await _replace_each(fleet, life)
    finally:
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
    await life.wave.pause()
    await until(lambda: not life.odd(), GOES_ON_WITHIN_S, "every operation has its effects")
    assert not [each.refusal for each in life.wave.operations if each.refusal]
    await until(talker.is_answered, GOES_ON_WITHIN_S, "all that was said is answered")
    heard = await talker.heard()
    assert [text for role, text in heard if role == "user"] == talker.said
    assert [role for role, _ in heard] == ["user", "assistant"] * len(talker.said)
    for run_id in life.runs:
        assert set((await life.made(run_id)).values()) == {1}
    kinds = Counter(each.kind for each in life.wave.operations)
    print(f"{dict(kinds)}, {len(life.runs)} articles, {len(talker.said)} sentences in order")


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

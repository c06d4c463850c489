"""Holders are killed, the working memory is killed: never two inside, nothing is counted twice or lost."""

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from bus_schema.swm import AcquireLock, GetCounter, GetLockInfo, IncrementCounter
from mindbus import Client, connect
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.forked_workers import forked_workers_of
from tests.installed import FLEET
from tests.lock_holder import LEASE_MS, LOCK

ROOT = Path(__file__).parents[2]
# A message to the working memory, its answer, on a machine that has other things to do.
SLACK_S = 10.0
AT_ONCE = 50

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


class Holders:
    """Agents in processes of their own, all after one lock."""

    def __init__(self, amqp_url: str, folder: Path) -> None:
        self._where = (amqp_url, str(folder), str(folder / "region"))
        self._region = folder / "region"
        self._running: dict[str, subprocess.Popen[str]] = {}
        self.ended: list[str] = []

    def start(self, name: str) -> None:
        command = [sys.executable, "-m", "tests.lock_holder", name, *self._where]
        self._running[name] = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)

    def kill(self, name: str) -> None:
        """Whatever it was doing; if it was gone already, why is in `ended`."""
        process = self._running.pop(name)
        ended = process.poll() is not None
        process.kill()
        said = process.communicate()[1]
        if ended:
            self.ended.append(said)

    def visits(self) -> list[tuple[int, float, str]]:
        """The fencing number, the time, the name of whoever was inside."""
        lines = self._region.read_text().splitlines() if self._region.exists() else []
        return [(int(fencing), float(at), name) for fencing, at, name in map(str.split, lines)]

    def of(self, name: str) -> int:
        return sum(1 for _, _, visitor in self.visits() if visitor == name)

    @property
    def names(self) -> list[str]:
        return list(self._running)


@contextmanager
def holders_of(amqp_url: str, folder: Path) -> Iterator[Holders]:
    holders = Holders(amqp_url, folder)
    try:
        yield holders
    finally:
        for name in holders.names:
            holders.kill(name)


@pytest.mark.parametrize(
    ("visits", "kills"), [(120, 2), pytest.param(1000, 20, marks=[pytest.mark.proof, pytest.mark.timeout(900)])]
)
async def test_never_two_inside_while_holders_are_killed(
    vhost_url: str, tmp_path: Path, report: Callable[[str], None], visits: int, kills: int
) -> None:
    chance, settings = random.Random(visits), settings_for(vhost_url, tmp_path)
    async with fleet_of(FLEET["swm"], settings=settings):
        with holders_of(vhost_url, tmp_path) as holders:
            for number in range(2):
                holders.start(f"first-{number}")
            for number in range(kills):
                await until(lambda: len(holders.visits()) >= visits * (number + 1) // (kills + 1), 60)  # noqa: B023
                # At any moment of what they do.
                await asyncio.sleep(chance.random() * 0.02)
                holders.kill(chance.choice(holders.names))
                holders.start(f"next-{number}")
                await until(lambda: holders.of(f"next-{number}"), 60)  # noqa: B023
            await until(lambda: len(holders.visits()) >= visits, 120)
        seen = holders.visits()

    numbers, times = [fencing for fencing, _, _ in seen], [at for _, at, _ in seen]
    waits = [later - earlier for earlier, later in pairwise(times)]
    report(f"{len(seen)} visits, {kills} holders killed; the longest wait {max(waits):.2f} s, a lease {LEASE_MS} ms")
    assert holders.ended == []
    assert numbers == sorted(set(numbers))
    assert max(waits) < LEASE_MS / 1000 + SLACK_S


@pytest.mark.parametrize(
    ("many", "kills"), [(200, 1), pytest.param(10_000, 10, marks=[pytest.mark.proof, pytest.mark.timeout(900)])]
)
async def test_a_killed_working_memory_keeps_locks_and_counts_each_once(
    vhost_url: str, tmp_path: Path, many: int, kills: int
) -> None:
    settings, room = settings_for(vhost_url, tmp_path, request_timeout_s=120), asyncio.Semaphore(AT_ONCE)
    done = 0

    async def increment(bus: Client, operation: int) -> None:
        nonlocal done
        async with room:
            await bus.request(IncrementCounter(name="drafts", operation_id=f"op-{operation}"))
            done += 1

    with forked_workers_of(settings) as workers:
        await workers.start("swm")
        async with connect("agent.alice", settings=settings) as bus:
            held = await bus.request(AcquireLock(name=LOCK, lease_ms=600_000))
            counting = asyncio.gather(*(increment(bus, number) for number in range(many)))
            for number in range(kills):
                await until(lambda: done >= many * (number + 1) // (kills + 2), 120)  # noqa: B023
                await workers.kill("swm")
            await counting
            again = [bus.request(IncrementCounter(name="drafts", operation_id=f"op-{number}")) for number in range(20)]
            await asyncio.gather(*again)

            assert (await bus.request(GetCounter(name="drafts"))).value == many
            info = await bus.request(GetLockInfo(name=LOCK))
            assert (info.fencing, info.expires) == (held.fencing, held.expires)

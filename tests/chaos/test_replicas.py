"""Two processes of every worker, each with a folder of its own: whichever is killed, its fellow goes on."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import pytest

from agents.configuration.prompts import role_names
from agents.processes.cards import shipped_card
from benchmarks.servers.postgres import PrivatePostgres
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import BRIEF
from bus_schema.ids import mint
from bus_schema.process import GetProcess, StartProcess
from bus_schema.runs import RunStatus
from bus_schema.storage import SearchArtifacts
from config.settings import FleetSettings
from mindbus import Client, connect
from mindbus.health import Health, HealthFolder
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from tests.chaos.ledger import Entries, Ledger
from tests.chaos.traffic import Operation, Traffic, Wave
from tests.installed import FLEET

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.rabbit, pytest.mark.backends, pytest.mark.proof]

_KINDS = ("process", "dialogue", "kem", "recording")
_UP_WITHIN_S = 300.0
_GOES_ON_WITHIN_S = 60.0
_PER_S = 2.0
# Of others nobody stands by: the fleet goes on without them for the seconds that whoever looks after them needs.
_ALONE = ("gateway", "sim")


@dataclass
class Replica:
    """One process of a worker."""

    worker: str
    settings: FleetSettings
    process: Popen[bytes] | None = None

    @property
    def health(self) -> Health | None:
        """As it has told last, if it runs."""
        folder = HealthFolder(self.settings)
        alive = [each for each in folder.all_here() if folder.trouble(each) is None]
        return alive[-1] if alive else None

    @property
    def is_at_work(self) -> bool:
        return self.health is not None and self.health.ready

    def start(self) -> None:
        self.settings.data_dir.mkdir(parents=True, exist_ok=True)
        with (self.settings.data_dir / "log").open("ab") as log:
            self.process = Popen(
                (sys.executable, "-m", "mindbus.cli.main", "worker", self.worker),
                env=self.settings.environment(),
                stdout=log,
                stderr=log,
            )

    async def well(self) -> None:
        """Wait until it works or stands by."""

        def is_well() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, (self.settings.data_dir / "log").read_text()[-2000:]
            return self.health is not None

        await until(is_well, _UP_WITHIN_S, f"{self.worker} in {self.settings.data_dir.name} is well")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, number)
            self.process.wait()


class Fleet:
    """Two replicas of each worker on one broker, one PostgreSQL and one folder of artifacts."""

    def __init__(self, folder: Path, settings: FleetSettings) -> None:
        self.replicas = {
            name: [
                Replica(name, settings.model_copy(update={"data_dir": folder / f"{name}-{number}"}))
                for number in range(1 if name in _ALONE else 2)
            ]
            for name in FLEET
        }

    @property
    def all(self) -> list[Replica]:
        return [replica for replicas in self.replicas.values() for replica in replicas]

    async def up(self) -> None:
        for replica in self.all:
            replica.start()
        for replica in self.all:
            await replica.well()

    def down(self) -> None:
        for replica in self.all:
            replica.end()


class Life:
    """What users do meanwhile, and what has become of it."""

    def __init__(self, bus: Client, brief: ArtifactRef, ledger: Ledger) -> None:
        self._bus, self._brief, self._ledger = bus, brief, ledger
        traffic = Traffic(bus, brief, within_s=_GOES_ON_WITHIN_S)
        self.wave = Wave(traffic, _KINDS, wanted=1_000_000, per_s=_PER_S, chance=random.Random(11))
        self.runs: list[str] = []

    async def look(self) -> None:
        """Note for ever what has happened."""
        while True:
            await self._ledger.read()
            for operation in self.wave.operations:
                operation.look(self._ledger)
            await asyncio.sleep(0.2)

    async def start_article(self) -> str:
        run_id = mint("run")
        await self._bus.request(StartProcess(run_id=run_id, card_name="article", inputs=(self._brief,)), trace=run_id)
        self.runs.append(run_id)
        return run_id

    async def is_completed(self, run_id: str) -> bool:
        run = await self._bus.request(GetProcess(run_id=run_id), trace=run_id)
        assert run.status is not RunStatus.FAILED, run
        return run.status is RunStatus.COMPLETED

    async def goes_on(self) -> float:
        """Seconds until one operation of each kind that begins now is done, and an article."""
        began = time.monotonic()
        probes, run_id = self.wave.probe(), await self.start_article()
        await until(lambda: all(probe.applied_at for probe in probes), _GOES_ON_WITHIN_S, "operations of each kind")
        await until(lambda: self.is_completed(run_id), _GOES_ON_WITHIN_S, "the article")
        return time.monotonic() - began

    async def made(self, run_id: str) -> Counter[str]:
        """Steps of a run by the number of artifacts made of them."""
        page = await self._bus.request(SearchArtifacts(trace_id=run_id, limit=100), trace=run_id)
        return Counter(made.step_id or BRIEF for made in page.items)

    def odd(self) -> list[Operation]:
        """Operations whose effects are not there once each."""
        return [each for each in self.wave.operations if set(each.effects(self._ledger)) != {1} or not each.accepted_at]


@asynccontextmanager
async def fleet_and_life(folder: Path) -> AsyncIterator[tuple[Fleet, Life]]:
    async with AsyncExitStack() as stack:
        node, postgres = PrivateNode(folder / "broker"), PrivatePostgres()
        await node.start()
        stack.push_async_callback(node.kill)
        await postgres.start()
        stack.push_async_callback(postgres.remove)
        settings = FleetSettings(
            data_dir=folder / "client",
            amqp_url=node.amqp_url,
            management_url=node.address.management_url,
            database_url=postgres.url,
            artifacts_url=(folder / "artifacts").as_uri(),
            gateway_port=0,
            heartbeat_s=1,
        )
        recorded = "SELECT message_id FROM lsm.raw_log WHERE message_id IS NOT NULL"
        ledger = Ledger(node.amqp_url, [Entries("recorded", postgres.url, recorded)])
        await ledger.open()
        stack.push_async_callback(ledger.close)
        fleet = Fleet(folder, settings)
        stack.callback(fleet.down)
        await fleet.up()
        bus = await stack.enter_async_context(connect("user.local", settings=settings))
        async with open_artifacts(bus, settings) as artifacts:
            put = await artifacts.put(
                b"# Storm\n\nA storm came over the sea.\n",
                artifact_type=BRIEF,
                trace="run_briefs",
                content_type="text/markdown",
                visibility="public",
            )
        life = Life(bus, put.ref, ledger)
        for task in (asyncio.create_task(life.wave.flow()), asyncio.create_task(life.look())):
            stack.callback(task.cancel)
        yield fleet, life


@pytest.mark.timeout(3600)
async def test_every_replica_is_killed(tmp_path: Path) -> None:
    async with fleet_and_life(tmp_path) as (fleet, life):
        print(f"goes on in {await life.goes_on():.1f} s with nothing killed")
        for name, replicas in fleet.replicas.items():
            # The one at work first; then the other, which has taken over.
            for replica in sorted(replicas, key=lambda each: not each.is_at_work):
                began = time.monotonic()
                replica.end()
                fellows = [each for each in replicas if each is not replica]
                if not fellows:
                    replica.start()
                    await replica.well()
                for fellow in fellows:
                    await until(lambda: fellow.is_at_work, _GOES_ON_WITHIN_S, f"another {name} is at work")  # noqa: B023
                taken_over = time.monotonic() - began
                print(f"{name}: another at work after {taken_over:.1f} s, all goes on in {await life.goes_on():.1f} s")
                if fellows:
                    replica.start()
                    await replica.well()

        await life.wave.pause()
        await until(lambda: not life.odd(), _GOES_ON_WITHIN_S, "every operation has its effects")
        steps = {step.id for step in shipped_card("article", role_names()).steps}
        for run_id in life.runs:
            made = await life.made(run_id)
            assert set(made.values()) == {1}, (run_id, made)
            assert steps <= set(made)
        print(f"{len(life.wave.operations)} operations, {len(life.runs)} articles")

"""Workers as processes of their own, two of most, on one broker, one PostgreSQL, one folder; their users."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

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
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from tests.chaos.ledger import Entries, Ledger
from tests.chaos.traffic import Operation, Traffic, Wave, put_storm
from tests.installed import FLEET
from tests.rabbit_cluster import RabbitCluster

GOES_ON_WITHIN_S = 60.0
ALL_KINDS = ("process", "dialogue", "kem", "recording")
_UP_WITHIN_S = 300.0
_PER_S = 2.0
# Of others nobody stands by: the fleet goes on without them for the seconds that whoever looks after them needs.
_WRITERS = frozenset({"researcher", "ideator", "pushkin", "critic", "editor"})
_ALONE = ("gateway", "sim")


@dataclass
class Replica:
    """One process of a worker; `code` is a folder of wheels, where it is not to run what is under test."""

    worker: str
    settings: FleetSettings
    code: Path | None = None
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
                env=self._environment(),
                stdout=log,
                stderr=log,
            )

    def _environment(self) -> dict[str, str]:
        if self.code is None:
            return self.settings.environment()
        # Older code knows the settings that tests make, not all that there are.
        given = self.settings.model_dump(mode="json", include=self.settings.model_fields_set, exclude_none=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
        return (
            clean
            | {f"MINDBUS_{name.upper()}": str(value) for name, value in given.items()}
            | {"PYTHONPATH": str(self.code)}
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

    def __init__(
        self, folder: Path, settings: FleetSettings, workers: Collection[str] = FLEET, code: Path | None = None
    ) -> None:
        self.replicas = {
            name: [
                Replica(name, settings.model_copy(update={"data_dir": folder / f"{name}-{number}"}), code)
                for number in range(1 if name in _ALONE else 2)
            ]
            for name in workers
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

    def __init__(
        self, bus: Client, brief: ArtifactRef, ledger: Ledger, kinds: tuple[str, ...], *, writes: bool
    ) -> None:
        self.bus, self._brief, self._ledger, self._writes = bus, brief, ledger, writes
        traffic = Traffic(bus, brief, within_s=GOES_ON_WITHIN_S)
        self.wave = Wave(traffic, kinds, wanted=1_000_000, per_s=_PER_S, chance=random.Random(11))
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
        await self.bus.request(StartProcess(run_id=run_id, card_name="article", inputs=(self._brief,)), trace=run_id)
        self.runs.append(run_id)
        return run_id

    async def is_completed(self, run_id: str) -> bool:
        run = await self.bus.request(GetProcess(run_id=run_id), trace=run_id)
        assert run.status is not RunStatus.FAILED, run
        return run.status is RunStatus.COMPLETED

    async def goes_on(self) -> float:
        """Seconds until one operation of each kind that begins now is done, and an article where there are writers."""
        began = time.monotonic()
        probes, run_id = self.wave.probe(), await self.start_article() if self._writes else None
        await until(lambda: all(probe.applied_at for probe in probes), GOES_ON_WITHIN_S, "operations of each kind")
        if run_id is not None:
            await until(lambda: self.is_completed(run_id), GOES_ON_WITHIN_S, "the article")
        return time.monotonic() - began

    async def made(self, run_id: str) -> Counter[str]:
        """Steps of a run by the number of artifacts made of them."""
        page = await self.bus.request(SearchArtifacts(trace_id=run_id, limit=100), trace=run_id)
        return Counter(made.step_id or BRIEF for made in page.items)

    def count(self, kind: str) -> int:
        """Operations of a kind that were begun so far."""
        return sum(each.kind == kind for each in self.wave.operations)

    def odd(self) -> list[Operation]:
        """Operations whose effects are not there once each."""
        return [each for each in self.wave.operations if set(each.effects(self._ledger)) != {1} or not each.accepted_at]


async def _addresses(stack: AsyncExitStack, folder: Path, cluster: RabbitCluster | None) -> tuple[str, str]:
    """Of AMQP and of the management API; of a private node that is started, if there is no cluster."""
    if cluster is not None:
        # A frozen node is given up after two of them.
        return f"{cluster.amqp_url}?heartbeat=4", cluster.management_url
    node = PrivateNode(folder / "broker")
    await node.start()
    stack.push_async_callback(node.kill)
    return node.amqp_url, node.address.management_url


@asynccontextmanager
async def fleet_and_life(
    folder: Path,
    *,
    workers: Collection[str] = FLEET,
    kinds: tuple[str, ...] = ALL_KINDS,
    code: Path | None = None,
    cluster: RabbitCluster | None = None,
) -> AsyncIterator[tuple[Fleet, Life]]:
    """A fleet of these workers, and what these kinds of users do; of older code, on a cluster, where there is one."""
    async with AsyncExitStack() as stack:
        amqp_url, management_url = await _addresses(stack, folder, cluster)
        postgres = PrivatePostgres()
        await postgres.start()
        stack.push_async_callback(postgres.remove)
        settings = FleetSettings(
            data_dir=folder / "client",
            amqp_url=amqp_url,
            management_url=management_url,
            database_url=postgres.url,
            artifacts_url=(folder / "artifacts").as_uri(),
            gateway_port=0,
            heartbeat_s=1,
        )
        recorded = "SELECT message_id FROM lsm.raw_log WHERE message_id IS NOT NULL"
        ledger = Ledger(amqp_url, [Entries("recorded", postgres.url, recorded)])
        await ledger.open()
        stack.push_async_callback(ledger.close)
        fleet = Fleet(folder, settings, workers, code)
        stack.callback(fleet.down)
        await fleet.up()
        bus = await stack.enter_async_context(connect("user.local", settings=settings))
        brief = await put_storm(bus, settings)
        life = Life(bus, brief, ledger, kinds, writes=set(workers) >= _WRITERS)
        for task in (asyncio.create_task(life.wave.flow()), asyncio.create_task(life.look())):
            stack.callback(task.cancel)
        yield fleet, life

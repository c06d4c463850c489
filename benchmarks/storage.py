"""`python -m benchmarks.storage` measures artifacts, large ones beside tools that make no promises."""

import argparse
import asyncio
import hashlib
import json
import os
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from benchmarks.rounds import in_turn
from benchmarks.servers.cpu_time import cpu_s
from benchmarks.servers.postgres import PrivatePostgres, create_database
from benchmarks.servers.seaweed import BUCKET, PrivateSeaweed
from benchmarks.storage_children import IN_OWN_ENVIRONMENT, Child, child
from benchmarks.storage_peers import CopyAndHash, CopyAndSum
from benchmarks.storage_report import Rates, StorageReport, StoreReport, as_text
from benchmarks.storage_tasks import DATABASES, STORES, Database, Large, Small, Store, Took, TookEach
from config.settings import FleetSettings
from mindbus.health import HealthFolder, WorkerUnhealthy
from mindbus.logs import configure_logs
from mindbus_fleet.node.private import PrivateNode

_MIB = 1024 * 1024
_LOOKS = 600
_FEWER = 5
_MLFLOW = (*IN_OWN_ENVIRONMENT, str(Path(__file__).with_name("mlflow-requirements.txt")), "python")

Carry = Callable[[Large], Awaitable[Took]]
# What the settings say of a store, with whom MindBus is measured beside there.
World = tuple[dict[str, object], dict[str, Carry]]


class Unsound(Exception):
    """Other bytes came back than were put, so that the time says nothing."""


@dataclass(frozen=True)
class Extent:
    """How much to measure; `at_once` are put together by an agent in the batched part."""

    rounds: int
    size_mib: int
    artifacts: int
    agents: int
    at_once: int


FULL = Extent(rounds=3, size_mib=1024, artifacts=2000, agents=20, at_once=100)
BAR = replace(FULL, rounds=1, size_mib=256)
QUICK = Extent(rounds=1, size_mib=16, artifacts=40, agents=4, at_once=10)


@dataclass(frozen=True)
class Bench:
    """One store with everything that runs for it."""

    folder: Path
    agent: Child
    agents: Child
    worker: Child
    peers: dict[str, Carry]
    mlflow: Child | None

    async def measure(self, extent: Extent) -> StoreReport:
        """Everybody in the opposite order each round, so that noise falls on all alike."""
        report = StoreReport()
        await self._warm_up()
        for number in range(extent.rounds):
            source, digest = self._source(extent.size_mib, number)
            rates: dict[str, Rates] = {"put": {}, "get": {}}
            for name, carry in in_turn(self._carriers().items(), number):
                for way, took_s in (await self._there_and_back(carry, f"{name}_{number}", source, digest)).items():
                    rates[way][name] = extent.size_mib / took_s
            report.rounds.append(rates)
            self._weigh(report)
            print(f"round {number + 1} of {extent.rounds} done", file=sys.stderr)
        for number in range(extent.rounds):
            for measured in in_turn((self._small_round, self._mlflow_round), number):
                await measured(extent, report)
            print("small artifacts done", file=sys.stderr)
        return report

    def _carriers(self) -> dict[str, Carry]:
        return {"mindbus": self._mindbus, **self.peers}

    async def _mindbus(self, order: Large) -> Took:
        return Took.model_validate_json(await self.agent.ask(order))

    async def _small(self, order: Small) -> TookEach:
        processes = {"agents": self.agents, "storage": self.worker}
        before = {name: cpu_s([process.pid]) for name, process in processes.items()}
        took = TookEach.model_validate_json(await self.agents.ask(order))
        took.cpu_s = {name: cpu_s([process.pid]) - before[name] for name, process in processes.items()}
        return took

    async def _small_round(self, extent: Extent, report: StoreReport) -> None:
        report.small.append(await self._small(Small(artifacts=extent.artifacts, agents=extent.agents)))
        batched = Small(artifacts=extent.artifacts, agents=extent.agents, at_once=extent.at_once)
        report.batched.append(await self._small(batched))

    async def _mlflow_round(self, extent: Extent, report: StoreReport) -> None:
        """Fewer: the rate is what is compared."""
        if self.mlflow is None:
            return
        for name, a_run_each in (("mlflow", False), ("mlflow_run_each", True)):
            artifacts = max(extent.agents, extent.artifacts // _FEWER)
            order = Small(artifacts=artifacts, agents=extent.agents, a_run_each=a_run_each)
            report.others.setdefault(name, []).append(TookEach.model_validate_json(await self.mlflow.ask(order)))

    async def _warm_up(self) -> None:
        """Whatever the first ones set up is none of the growth."""
        await self._small(Small(artifacts=20, agents=2))
        source = self.folder / "first"
        source.write_bytes(b"first")
        digest = hashlib.sha256(b"first").hexdigest()
        await self._there_and_back(self._mindbus, "first", source, digest)
        for process in (self.agent, self.worker):
            process.weigh_idle()

    def _weigh(self, report: StoreReport) -> None:
        for process in (self.agent, self.worker):
            report.grew(process.name, process.growth_mib())

    async def _there_and_back(self, carry: Carry, name: str, source: Path, digest: str) -> dict[str, float]:
        back = self.folder / "back"
        took: dict[str, float] = {}
        ways: tuple[tuple[Literal["put", "get"], Path], ...] = (("put", source), ("get", back))
        for way, path in ways:
            # What the one before left to be written is not to be waited for now.
            await asyncio.to_thread(os.sync)
            carried = await carry(Large(do=way, path=path, name=name))
            if carried.sha256 != digest:
                raise Unsound(f"{Unsound.__doc__} ({name}, {way})")
            took[way] = carried.seconds
        back.unlink()
        return took

    def _source(self, size_mib: int, number: int) -> tuple[Path, str]:
        """Other bytes each round, none of them alike: a store that knows some of them already is no help."""
        path, digest = self.folder / "source", hashlib.sha256()
        chunks = random.Random(number)
        with path.open("wb") as file:
            for _ in range(size_mib):
                chunk = chunks.randbytes(_MIB)
                digest.update(chunk)
                file.write(chunk)
        return path, digest.hexdigest()


@asynccontextmanager
async def _bench(store: Store, amqp_url: str, folder: Path, database: Database = "sqlite") -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        where, peers = await stack.enter_async_context(_WORLDS[store](folder))
        given: dict[str, object] = {"amqp_url": amqp_url, "data_dir": folder / "data", "log_level": "ERROR"}
        if database == "postgresql":
            server = PrivatePostgres()
            stack.push_async_callback(server.remove)
            await server.start()
            given["storage_database_url"] = await asyncio.to_thread(create_database, server.url)
        settings = FleetSettings.model_validate(given | where)
        environment = settings.environment()
        worker = await stack.enter_async_context(
            child("storage", "-m", "mindbus.cli.main", "worker", "storage", environment=environment)
        )
        await _until_ready(settings)
        agent = await stack.enter_async_context(
            child("agent", "-m", "benchmarks.storage_agent", environment=environment)
        )
        agents = await stack.enter_async_context(
            child("agents", "-m", "benchmarks.storage_agent", environment=environment)
        )
        for ready in (agent, agents):
            await ready.wait_ready()
        mlflow = None
        if store == "files":
            mlflow = await stack.enter_async_context(child("mlflow", "-m", "benchmarks.storage_mlflow", python=_MLFLOW))
            await mlflow.tell(json.dumps(str(folder / "mlflow")))
            await mlflow.wait_ready()
        yield Bench(folder, agent, agents, worker, peers, mlflow)


@asynccontextmanager
async def _in_files(folder: Path) -> AsyncIterator[World]:
    plain = folder / "plain"
    yield {}, {"cp+sha256sum": CopyAndSum(plain).carry, "cp+hashlib": CopyAndHash(plain).carry}


@asynccontextmanager
async def _in_s3(_folder: Path) -> AsyncIterator[World]:
    server = PrivateSeaweed()
    await server.start()
    try:
        account = server.account
        told = json.dumps([server.endpoint_url, BUCKET, account.access_key, account.secret_key])
        async with child("s3fs", "-m", "benchmarks.storage_peers") as peer:
            await peer.tell(told)
            await peer.wait_ready()

            async def carry(order: Large) -> Took:
                return Took.model_validate_json(await peer.ask(order))

            where: dict[str, object] = {
                "artifacts_url": f"s3://{BUCKET}/bench",
                "s3_endpoint_url": server.endpoint_url,
                "s3_access_key": account.access_key,
                "s3_secret_key": account.secret_key,
                "s3_region": account.region,
            }
            yield where, {"s3fs+sha256": carry}
    finally:
        await server.remove()


_WORLDS: dict[Store, Callable[[Path], AbstractAsyncContextManager[World]]] = {"files": _in_files, "s3": _in_s3}


async def _until_ready(settings: FleetSettings) -> None:
    health = HealthFolder(settings)
    for _ in range(_LOOKS):
        with suppress(WorkerUnhealthy):
            health.require("storage")
            return
        await asyncio.sleep(0.1)
    health.require("storage")


async def measure(extent: Extent, stores: tuple[Store, ...], where: Path | None, database: Database) -> StorageReport:
    report = StorageReport()
    with tempfile.TemporaryDirectory(prefix="mindbus-bench-", dir=where) as name:
        async with PrivateNode(Path(name) / "rabbitmq") as node:
            for store in stores:
                async with _bench(store, node.amqp_url, Path(name) / store, database) as bench:
                    report.stores[store] = await bench.measure(extent)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storage", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="one small round: shows that it runs, measures nothing")
    size.add_argument("--bar", action="store_true", help="one round with files: all small artifacts, less of the large")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, help=f"instead of {FULL.rounds}")
    parser.add_argument("--store", choices=STORES, help="one of them alone")
    parser.add_argument(
        "--database", choices=DATABASES, default="sqlite", help="of storage; PostgreSQL is a private one"
    )
    parser.add_argument("--folder", type=Path, help="where to work; default: the folder for temporary files")
    given = parser.parse_args()
    configure_logs("ERROR", "console")
    extent = QUICK if given.quick else BAR if given.bar else FULL
    if given.rounds:
        extent = replace(extent, rounds=given.rounds)
    stores: tuple[Store, ...] = (given.store,) if given.store else ("files",) if given.bar else STORES
    report = asyncio.run(measure(extent, stores, given.folder, given.database))
    print(json.dumps(report.as_json(), indent=2) if given.json else as_text(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())

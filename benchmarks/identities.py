"""Cost of identities: CPU time of requests, events and artifacts with a user for each worker, beside one shared login.

python -m benchmarks.identities [--rounds 10]
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from yarl import URL

from benchmarks.servers.cpu_time import cpu_s
from bus_schema.delegation import targets_of
from bus_schema.messages import Event
from bus_schema.users import ListUsers
from config.settings import FleetSettings
from mindbus.bus.client import Client
from mindbus.bus.permissions import definitions_of, merged, of_worker
from mindbus.bus.topology import backbone, of_service, rungs_of
from mindbus.bus.topology_admin import apply
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.files.disk import write_private
from mindbus.management import Management
from mindbus.run_dir import broker_file, user_file
from mindbus.sdk.artifacts import Artifacts, open_artifacts
from mindbus.testing import running
from mindbus_fleet.node.private import PrivateNode
from workers.storage.worker import open_storage_worker

WORKERS = ("storage", "meter")
_AT_ONCE = 16
_TIMES = {"request": 1500, "publish": 3000, "put an artifact": 300}


class Measured(Event, topic="meter", name="measured"):
    """An event that nobody listens to."""

    number: int


class Meter(Worker):
    """A worker of which the bus alone is used."""

    name = "meter"
    bus: Client

    def __init__(self, context: WorkerContext) -> None:
        Meter.bus = context.bus


@dataclass(frozen=True)
class Side:
    """A fleet with a node of its own."""

    node_pid: int
    work: dict[str, Callable[[int], Awaitable[object]]]

    async def cost_of(self, name: str) -> float:
        """CPU time of one call, in microseconds, of this process and the node together."""
        call, times, turns = self.work[name], _TIMES[name], asyncio.Semaphore(_AT_ONCE)

        async def one(number: int) -> None:
            async with turns:
                await call(number)

        own, broker = process_time(), cpu_s([self.node_pid])
        await asyncio.gather(*map(one, range(times)))
        return 1e6 * (process_time() - own + cpu_s([self.node_pid]) - broker) / times


@asynccontextmanager
async def side(folder: Path, *, has_identities: bool) -> AsyncIterator[Side]:
    """A fleet on its own node: with the template's users, or with the administrator's login for all."""
    async with PrivateNode(folder / "node", workers=WORKERS if has_identities else ()) as node:
        login = URL(node.address.management_url).with_user(node.address.username).with_password(node.address.password)
        amqp_url = None if has_identities else node.amqp_url
        settings = FleetSettings(amqp_url=amqp_url, management_url=str(login), data_dir=folder)
        await _provide(node, settings, has_identities=has_identities)

        async with running(open_storage_worker, Meter, settings=settings):
            bus = Meter.bus
            async with open_artifacts(bus.acting_as("agent.meter", service="meter"), settings) as artifacts:
                yield Side(node.pid, _work(bus, artifacts))


def _work(bus: Client, artifacts: Artifacts) -> dict[str, Callable[[int], Awaitable[object]]]:
    return {
        "request": lambda _number: bus.request(ListUsers()),
        "publish": lambda number: bus.publish(Measured(number=number)),
        "put an artifact": lambda number: artifacts.put(b"%d" % number, artifact_type="note", trace="measured"),
    }


async def _provide(node: PrivateNode, settings: FleetSettings, *, has_identities: bool) -> None:
    rungs = rungs_of(settings.retry_rungs)
    topology = backbone(rungs)
    for worker in WORKERS:
        topology += of_service(worker, takes_commands=True, event_keys=("evt.meter.heard",))
    await apply(node.amqp_url, topology)
    if has_identities:
        granted = [definitions_of(name, of_worker(name, targets_of(name), (), rungs)) for name in WORKERS]
        await Management(str(settings.management_url)).import_definitions(merged(granted))
        write_private(broker_file(settings), node.amqp_url)
        for name, url in node.worker_urls.items():
            write_private(user_file(settings, name), url)


async def measure(rounds: int) -> None:
    """Alternate both sides, so that what else the machine does befalls them alike."""
    with tempfile.TemporaryDirectory() as root:
        shared, apart = Path(root) / "shared", Path(root) / "apart"
        async with side(shared, has_identities=False) as one, side(apart, has_identities=True) as each:
            for name in _TIMES:
                pairs = []
                for number in range(rounds + 1):
                    order = (one, each) if number % 2 else (each, one)
                    found = {id(which): await which.cost_of(name) for which in order}
                    pairs.append((found[id(one)], found[id(each)]))
                # The first round warms up.
                pairs = pairs[1:]
                ratio = statistics.median(own / common for common, own in pairs)
                common, own = (statistics.median(values) for values in zip(*pairs, strict=True))
                print(f"{name}: {common:.0f} µs shared, {own:.0f} µs with identities, ratio {ratio:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    asyncio.run(measure(parser.parse_args().rounds))

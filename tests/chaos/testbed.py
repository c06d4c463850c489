"""A fleet under `mindbus up` with all that may break under it: broker, links, databases, object store, disk."""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from benchmarks.servers.postgres import PostgresMissing, PrivatePostgres, create_database
from benchmarks.servers.redis import PrivateRedis, RedisMissing
from benchmarks.servers.seaweed import BUCKET, PrivateSeaweed, SeaweedMissing
from bus_schema.artifacts import ArtifactRef
from config.settings import FleetSettings
from mindbus import Client, connect
from mindbus.health import HealthFolder, is_alive
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from mindbus_fleet.supervision.run_folder import RunFolder
from tests.chaos.bookkeeping import BOOKING_DATABASE, SABOTAGE
from tests.chaos.faulty_link import FaultyLink, faulty_link
from tests.chaos.ledger import Entries, Ledger
from tests.chaos.skewed_clock import CLOCK
from tests.chaos.traffic import MIX, Traffic, Wave, put_storm
from tests.management import Management
from tests.postgres_proxy import CommitCutter, Fate, cutting
from tests.small_disks import SmallDisk, failing_disk_at, small_disk_at
from tests.third_party import install

ROOT = Path(__file__).parents[2]
THIRD_PARTY = ("booking", "audit")
# What the kinds of traffic need.
WORKERS = (
    *("storage", "history", "tracker", "task_manager", "context", "dialogue", "orchestrator", "critic", "swm"),
    *("glm", "lsm"),
    *THIRD_PARTY,
)
_DISK_MB = 768
_UP_WITHIN_S = 180.0
_WELL_WITHIN_S = 120.0
_TOLD_WITHIN_S = 30.0
_SITE = """
import sys

if "booking" in sys.orig_argv:
    import tests.chaos.skewed_clock
    import tests.chaos.sabotage
"""


class CommandFailed(Exception):
    """A `mindbus` command has failed."""


@dataclass(frozen=True)
class Pace:
    """Heartbeats in seconds, operations per fault and second, how long an operation, or a drain, may take."""

    heartbeat_s: float
    amqp_heartbeat_s: int
    messages: int
    per_s: float
    done_within_s: float
    drain_s: float

    @property
    def silence_s(self) -> float:
        """Longer than a silent link goes unnoticed."""
        return 2 * self.amqp_heartbeat_s + 2

    @property
    def frozen_s(self) -> float:
        """Longer than a frozen process goes unnoticed."""
        return 3 * self.heartbeat_s + 2


QUICK = Pace(heartbeat_s=1, amqp_heartbeat_s=4, messages=110, per_s=25, done_within_s=60, drain_s=5)
LONG = Pace(heartbeat_s=5, amqp_heartbeat_s=15, messages=400, per_s=20, done_within_s=240, drain_s=20)


@dataclass
class Testbed:
    """One fleet on one data folder; what a machine lacks is None, with the reason in `missing`."""

    __test__ = False

    folder: Path
    settings: FleetSettings
    extras: dict[str, str]
    workers: tuple[str, ...]
    kinds: tuple[str, ...]
    pace: Pace
    chance: random.Random
    broker: PrivateNode | None = None
    worker_link: FaultyLink | None = None
    client_link: FaultyLink | None = None
    postgres: PrivatePostgres | None = None
    cutter: CommitCutter | None = None
    commit_fate: Fate | None = None
    redis: PrivateRedis | None = None
    seaweed: PrivateSeaweed | None = None
    disk: SmallDisk | None = None
    missing: dict[str, str] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def __post_init__(self) -> None:
        self.run_folder = RunFolder(self.settings)
        self.health = HealthFolder(self.settings)
        self.ledger: Ledger
        self.bus: Client
        self.traffic: Traffic
        self.wave: Wave
        self._ignored: set[str] = set()

    @property
    def node(self) -> PrivateNode:
        assert self.broker is not None
        return self.broker

    @property
    def links(self) -> tuple[FaultyLink, ...]:
        """The ways of the workers and of the participants to the broker."""
        assert self.worker_link
        assert self.client_link
        return self.worker_link, self.client_link

    async def up(self) -> None:
        """Start the fleet; returns when it is ready. Raises CommandFailed."""
        await self.mindbus("up", "-d", "--workers", ",".join(self.workers))

    async def restart(self) -> None:
        """Stop the fleet, whatever it is in, and start it. Raises CommandFailed."""
        self.signal(signal.SIGCONT)
        await self.mindbus("down")
        await self.up()

    async def mindbus(self, *arguments: str) -> str:
        """Run a command; returns what it prints. Raises CommandFailed."""
        code, output = await self.try_mindbus(*arguments)
        if code:
            raise CommandFailed(f"mindbus {' '.join(arguments)}: {code}\n{output}")
        return output

    async def try_mindbus(self, *arguments: str) -> tuple[int, str]:
        """Run a command; returns its exit code and output."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mindbus.cli.main", *arguments),
            env=self.settings.environment() | self.extras,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), _UP_WITHIN_S)
        return process.returncode or 0, output.decode(errors="replace")

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the worker processes that run."""
        state = self.run_folder.state()
        return {each.name: each.pid for each in (state.workers if state else ()) if each.pid and is_alive(each.pid)}

    @property
    def supervisor(self) -> int:
        state = self.run_folder.state()
        assert state is not None
        return state.pid

    def signal(self, number: signal.Signals, *processes: str) -> int:
        """Send it to worker processes, all of them where none is named; returns how many."""
        reached = [pid for name, pid in self.pids.items() if not processes or name in processes]
        for pid in reached:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(reached)

    def ailing(self) -> dict[str, str]:
        """Workers that are not well, with the reason."""
        found: dict[str, str] = dict.fromkeys(self.workers, "does not run")
        for health in self.health.all_here():
            trouble = self.health.trouble(health)
            if trouble is None or found.get(health.name):
                found[health.name] = trouble or ""
        awaited = set(self.workers) - self._ignored
        return {name: trouble for name, trouble in found.items() if trouble and name in awaited}

    async def well(self, within_s: float = _WELL_WITHIN_S) -> None:
        """Wait until every worker is. Raises ConditionNotMet."""
        await until(lambda: not self.ailing(), within_s, "every worker is well")

    async def open_traffic(self, amqp_url: str | None) -> None:
        """Connect the participants that begin operations."""
        settings = self.settings.model_copy(update={"amqp_url": amqp_url, "publish_timeout_s": 5.0})
        self.bus = await self._stack.enter_async_context(connect("user.local", settings=settings))
        brief: ArtifactRef | None = None
        if "process" in self.kinds:
            brief = await put_storm(self.bus, settings)
        self.traffic = Traffic(self.bus, brief, self.pace.done_within_s)

    def new_wave(self) -> Wave:
        """Traffic for the next fault."""
        self.wave = Wave(self.traffic, self.kinds, self.pace.messages, self.pace.per_s, self.chance)
        return self.wave

    def set_clock(self, seconds: float) -> None:
        """Put the clock of `booking` so many seconds ahead."""
        Path(self.extras[CLOCK]).write_text(str(seconds))
        # Health files are for the processes of one machine, which has one clock.
        self._ignored = {"booking"} if seconds else set()

    async def management(self) -> Management:
        """A client of the broker's management API, to be closed by whoever asks for it."""
        state = self.run_folder.state()
        address = self.broker.address if self.broker is not None else None
        if address is not None:
            return Management(address.management_url, address.username, address.password)
        assert state
        assert state.management_url
        return Management(state.management_url, state.username or "", state.password or "")

    async def held(self) -> int:
        """Messages that wait in queues of work or on the ladder, or are being handled."""
        async with await self.management() as management:
            queues = await management.queues()
        is_work = {name: q.depth for name, q in queues.items() if name.startswith(("mb.q.", "mb.retry."))}
        return sum(depth for name, depth in is_work.items() if not name.endswith(".dead"))

    async def is_idle(self) -> bool:
        """Whether no message waits, or is being handled."""
        return await self.held() == 0

    async def silence(self) -> None:
        """Let the time pass in which a silent link is noticed."""
        await asyncio.sleep(self.pace.silence_s)

    async def told(self, worker: str) -> None:
        """Wait until `health` and `doctor` say, by their exit codes, that a worker is not well. Raises ConditionNotMet.

        For faults that do not come back by themselves.
        """

        async def is_told() -> bool:
            codes = [(await self.try_mindbus(*command))[0] for command in (("health", worker), ("doctor",))]
            return codes == [1, 1]

        await until(is_told, _TOLD_WITHIN_S, f"it is told that {worker} is not well")

    async def last(self, seconds: float) -> None:
        """Let a fault last."""
        await asyncio.sleep(seconds)


def _environment(folder: Path, sabotage: str | None) -> dict[str, str]:
    """Environment that puts the counting workers in the fleet, with a clock that can be set."""
    module = "tests.chaos.bookkeeping"
    points = {"booking": f"{module}:BookingWorker", "audit": f"{module}:AuditWorker"}
    site = install(folder, "chaos_bookkeeping", "", **points)
    (site / "sitecustomize.py").write_text(_SITE)
    extras = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", CLOCK: str(folder / "clock")}
    return extras | ({SABOTAGE: sabotage} if sabotage else {})


def _entries(settings: FleetSettings, *, everything: bool, booking: str | None = None) -> list[Entries]:
    of = settings.database_of
    schema = "booking." if booking else ""
    found = [
        Entries("booked", booking or of("booking"), f"SELECT entry FROM {schema}entries"),
        Entries("audited", of("audit"), "SELECT entry FROM entries"),
    ]
    recorded = Entries("recorded", of("lsm"), "SELECT message_id FROM raw_log WHERE message_id IS NOT NULL")
    return [*found, *([recorded] if everything else [])]


@asynccontextmanager
async def shared_testbed(
    folder: Path, pace: Pace, seed: int, sabotage: str | None, without: Sequence[str] = ()
) -> AsyncIterator[Testbed]:
    """The fleet that most faults share: its broker behind links, its databases on servers where there are any."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        node = PrivateNode(folder / "broker")
        await node.start()
        stack.push_async_callback(node.kill)
        parts: dict[str, Any] = {"broker": node, "missing": {}}
        for name in ("worker_link", "client_link"):
            parts[name] = await stack.enter_async_context(faulty_link("127.0.0.1", node.address.amqp_port, chance))
        own = await _servers(stack, parts, without)
        data = folder / "data"
        if "disk" not in without:
            _mount(stack, parts, data)
        extras = _environment(folder, sabotage) | own.pop("extras", {})
        settings = FleetSettings(
            data_dir=data,
            amqp_url=_through(node, parts["worker_link"], pace),
            management_url=node.address.management_url.replace(
                "://", f"://{node.address.username}:{node.address.password}@"
            ),
            heartbeat_s=pace.heartbeat_s,
            drain_s=pace.drain_s,
            retry_rungs="1s,3s,6s,12s",
            **own["settings"],
        )
        bed = Testbed(folder, settings, extras, WORKERS, tuple(MIX), pace, chance, _stack=stack, **parts)
        if bed.cutter is not None:
            bed.cutter.fate_of = lambda _number: bed.commit_fate
        bed.ledger = Ledger(node.amqp_url, _entries(settings, everything=True, booking=own["booking"]))
        await bed.ledger.open()
        stack.push_async_callback(bed.ledger.close)
        await _started(stack, bed)
        await bed.open_traffic(_through(node, parts["client_link"], pace))
        yield bed


@asynccontextmanager
async def own_testbed(folder: Path, pace: Pace, seed: int, sabotage: str | None) -> AsyncIterator[Testbed]:
    """A small fleet whose supervisor keeps the broker, too."""
    async with AsyncExitStack() as stack:
        settings = FleetSettings(
            data_dir=folder / "data",
            heartbeat_s=pace.heartbeat_s,
            drain_s=pace.drain_s,
            retry_rungs="1s,3s,6s,12s",
        )
        bed = Testbed(
            folder,
            settings,
            _environment(folder, sabotage),
            ("history", *THIRD_PARTY),
            ("command", "request"),
            pace,
            random.Random(seed),
            _stack=stack,
        )
        bed.ledger = Ledger("", _entries(settings, everything=False))
        await _started(stack, bed)
        await bed.open_traffic(None)
        yield bed


async def _started(stack: AsyncExitStack, bed: Testbed) -> None:
    async def down() -> None:
        # Whatever the faults have left.
        bed.signal(signal.SIGCONT)
        await bed.try_mindbus("down")

    stack.push_async_callback(down)
    began = time.monotonic()
    await bed.up()
    print(f"fleet of {len(bed.workers)} workers up after {time.monotonic() - began:.0f} s", file=sys.stderr)


def _through(node: PrivateNode, link: FaultyLink, pace: Pace) -> str:
    return str(URL(node.amqp_url).with_port(link.port).update_query(heartbeat=pace.amqp_heartbeat_s))


async def _servers(stack: AsyncExitStack, parts: dict[str, Any], without: Sequence[str]) -> dict[str, Any]:
    """Start PostgreSQL, Redis and an object store, as far as there are any; what the fleet is told of them."""
    told: dict[str, Any] = {"settings": {}, "booking": None, "extras": {}}
    missing = parts["missing"]
    for name, start in (("postgres", _postgres), ("redis", _redis), ("s3", _seaweed)):
        if name in without:
            missing[name] = "not asked for"
            continue
        try:
            await start(stack, parts, told)
        except (PostgresMissing, RedisMissing, SeaweedMissing) as absent:
            missing[name] = str(absent)
    return told


async def _postgres(stack: AsyncExitStack, parts: dict[str, Any], told: dict[str, Any]) -> None:
    server = parts["postgres"] = PrivatePostgres()
    stack.push_async_callback(server.remove)
    await server.start()
    url, parts["cutter"] = await stack.enter_async_context(cutting(server.url, lambda _number: None))
    storage, booking = create_database(server.url), create_database(server.url)
    port = str(URL(url.replace("+psycopg", "")).port)
    told["settings"]["storage_database_url"] = storage.replace(str(server.port), port)
    told["extras"][BOOKING_DATABASE] = booking.replace(str(server.port), port)
    told["booking"] = booking


async def _redis(stack: AsyncExitStack, parts: dict[str, Any], told: dict[str, Any]) -> None:
    server = parts["redis"] = PrivateRedis()
    stack.push_async_callback(server.remove)
    await server.start()
    told["settings"]["cache_redis_url"] = server.url


async def _seaweed(stack: AsyncExitStack, parts: dict[str, Any], told: dict[str, Any]) -> None:
    server = parts["seaweed"] = PrivateSeaweed()
    stack.push_async_callback(server.remove)
    await server.start()
    account = server.account
    told["settings"] |= {
        "artifacts_url": f"s3://{BUCKET}/chaos",
        "s3_endpoint_url": server.endpoint_url,
        "s3_access_key": account.access_key,
        "s3_secret_key": account.secret_key,
        "s3_region": account.region,
    }


def _mount(stack: AsyncExitStack, parts: dict[str, Any], data: Path) -> None:
    for name, disk_at in (("journal", failing_disk_at), ("disk", small_disk_at)):
        try:
            parts["disk"] = stack.enter_context(disk_at(data, _DISK_MB))
        except (pytest.skip.Exception, OSError) as refused:
            parts["missing"][name] = str(refused)
        else:
            return
    data.mkdir(exist_ok=True)

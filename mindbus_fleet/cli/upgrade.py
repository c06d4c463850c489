"""The command `upgrade plan`: what runs beside what is installed here, and what to do in which order."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from sqlalchemy.exc import SQLAlchemyError

from bus_schema.fleet import Heartbeat
from config.settings import FleetSettings
from memory.glm.tables import MIGRATIONS as GLM
from memory.history.sql_store import MIGRATIONS as HISTORY
from memory.lsm.tables import MIGRATIONS as LSM
from memory.swm.tables import MIGRATIONS as SWM
from mindbus.bus import topology_admin
from mindbus.bus.topology_admin import Difference
from mindbus.cli.console import say, say_data, show_result, show_table
from mindbus.cli.errors import CommandError, read_settings
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, Json
from mindbus.cli.session import on_the_bus, run, shown_waiting
from mindbus.errors import MindBusError
from mindbus.registry import installed_workers
from mindbus.run_dir import broker_file
from mindbus.sql.database import Database
from mindbus.sql.migrations import Revision, revision_of, revisions
from mindbus.version import __version__
from mindbus_fleet.cli.topology import on_broker
from storage_service.runs import MIGRATIONS as RUNS
from storage_service.tables import MIGRATIONS as STORAGE

app = typer.Typer(no_args_is_help=True, help="Replace a fleet by a newer one, worker by worker.")

_MIGRATIONS = {"storage": STORAGE, "history": HISTORY, "glm": GLM, "lsm": LSM, "swm": SWM, "orchestrator": RUNS}
# Who is asked first: a newer command finds nobody who does not know it.
_FIRST = ("storage", "history", "glm", "lsm", "swm", "kps", "tracker", "packer")
_LAST = ("orchestrator", "dialogue", "sim", "gateway")
# One is late, one more is lost.
_HEARTBEATS = 2.5


@dataclass(frozen=True)
class DatabaseState:
    """A service's database: the revision that it has, and those that the first newer process adds."""

    service: str
    revision: str | None
    pending: tuple[Revision, ...]

    @property
    def contracts(self) -> bool:
        return any(each.contracts for each in self.pending) and self.revision is not None


@dataclass(frozen=True)
class PlannedStep:
    """One thing to do; `command` is empty where that depends on how workers are run."""

    what: str
    command: str = ""


@dataclass(frozen=True)
class UpgradePlan:
    """Everything that an upgrade to the code that is installed here changes, and in which order."""

    code: str
    running: dict[str, dict[str, int]]
    databases: tuple[DatabaseState, ...]
    differences: tuple[Difference, ...]
    is_private: bool

    @property
    def obstacles(self) -> list[str]:
        """Why older and newer workers cannot work side by side."""
        found = [
            f"the database of {each.service} drops what older code uses" for each in self.databases if each.contracts
        ]
        changed = [
            each.name for each in self.differences if each.kind.startswith("different") and "policy" not in each.kind
        ]
        return found + [f"{name} has to be rebuilt" for name in changed]

    @property
    def is_rolling(self) -> bool:
        """Whether workers can be replaced one by one, while the others work."""
        return not self.is_private and not self.obstacles

    def steps(self) -> Iterator[PlannedStep]:
        yield PlannedStep("Back up, so that you can return.", "mindbus backup PLACE")
        if self.is_private:
            yield PlannedStep(
                "Stop the fleet; what it has begun is finished, messages stay in their queues.", "mindbus down"
            )
            yield PlannedStep("Start the newer one: it migrates databases and queues by itself.", "mindbus up -d")
        elif self.obstacles:
            yield PlannedStep("Stop all workers, and programs that send to them.")
            if any(each.kind.startswith("different") for each in self.differences):
                yield PlannedStep("Rebuild the queues; their messages are kept.", "mindbus topology migrate")
            yield PlannedStep("Start the newer workers: the first process of each migrates its database.")
        else:
            if any(each.kind.startswith(("missing", "different")) for each in self.differences):
                yield PlannedStep("Declare what is new on the broker.", "mindbus topology apply")
            for name in in_order(self.running or installed_workers().checked().entries):
                yield PlannedStep(
                    f"Replace every process of {name}, each when the one before is well.", f"mindbus health {name}"
                )
        yield PlannedStep("Check that all is well, and that nothing of the older code is left.", "mindbus upgrade plan")

    def as_json(self) -> dict[str, Any]:
        parts = {"code": self.code, "rolling": self.is_rolling, "obstacles": self.obstacles, "workers": self.running}
        databases = [asdict(each) for each in self.databases]
        queues = [asdict(each) for each in self.differences]
        return parts | {"databases": databases, "topology": queues, "steps": [asdict(each) for each in self.steps()]}


@app.command()
def plan(as_json: Json = False) -> None:
    """Compare what runs with what is installed here, and list the steps of an upgrade; change nothing.

    Exit 1 where the fleet has to be stopped for it. Needs the login of an administrator in MINDBUS_AMQP_URL and
    MINDBUS_DATABASE_URL, unless on the private node.

    [bold]Example[/bold]

    mindbus upgrade plan
    """
    found = run(_examine(read_settings(FleetSettings)))
    show_result(found.as_json(), lambda _fields: _show(found), as_json=as_json)
    if found.obstacles:
        raise typer.Exit(1)


def in_order(workers: Collection[str]) -> list[str]:
    """Workers in the order in which they are replaced."""
    others = sorted(set(workers) - {*_FIRST, *_LAST})
    return [name for name in (*_FIRST, *others, *_LAST) if name in workers]


async def _examine(settings: FleetSettings) -> UpgradePlan:
    databases = [await state_of(service, folder, settings) for service, folder in _MIGRATIONS.items()]
    is_private = settings.amqp_url is None
    if is_private and not broker_file(settings).exists():
        return UpgradePlan(__version__, {}, tuple(databases), (), is_private)
    async with shown_waiting("Listening to the workers …"):
        running = await _running(settings)
        differences = await on_broker(lambda _url, management, wanted: topology_admin.compare(management, wanted))
    return UpgradePlan(__version__, running, tuple(databases), tuple(differences), is_private)


async def state_of(service: str, migrations: Path, settings: FleetSettings) -> DatabaseState:
    """Raises CommandError where the database cannot be read."""
    database = Database(settings.database_of(service), schema=service)
    try:
        is_new = database.is_sqlite and not await asyncio.to_thread(Path(database.url.database or "").exists)
        there = None if is_new else await database.read(revision_of)
    except (SQLAlchemyError, OSError, MindBusError) as trouble:
        advice = "start its server, and give an administrator's login in MINDBUS_DATABASE_URL"
        raise CommandError(f"the database of {service} cannot be read ({trouble}): {advice}") from trouble
    finally:
        await database.dispose()
    pending = tuple(each for each in revisions(migrations) if there is None or each.number > there)
    return DatabaseState(service, there, pending)


async def _running(settings: FleetSettings) -> dict[str, dict[str, int]]:
    """Processes of each worker by the version of their code, as their heartbeats say."""
    beats: dict[str, Heartbeat] = {}
    async with on_the_bus(LOCAL_USER, settings, goes_on=None) as bus, bus.subscribe(Heartbeat) as events:
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARTBEATS * settings.heartbeat_s):
                async for beat in events:
                    beats[beat.instance] = beat
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for beat in beats.values():
        found[beat.service][beat.version] += 1
    return {name: dict(found[name]) for name in in_order(found)}


def _show(found: UpgradePlan) -> None:
    say(f"MindBus {found.code} is installed here.")
    if found.running:
        show_table(("worker", "processes"), ((name, _counted(each)) for name, each in found.running.items()))
    else:
        say("No worker runs.")
    if pending := [each for each in found.databases if each.pending and each.revision is not None]:
        added = ((each.service, each.revision, "; ".join(map(_named, each.pending))) for each in pending)
        show_table(("database", "has", "gets"), added)
    if differing := [each for each in found.differences if each.kind.startswith("different")]:
        show_table(("broker", "name", "detail"), ((each.kind, each.name, each.detail) for each in differing))
    if missing := sum(each.kind.startswith("missing") for each in found.differences):
        say(f"The broker lacks {missing} queues, exchanges and bindings: `mindbus topology diff` lists them.")
    for obstacle in found.obstacles:
        say(f"Older and newer workers cannot work side by side: {obstacle}.")
    for number, step in enumerate(found.steps(), start=1):
        say_data(f"{number}. {translate(step.what)}" + (f"  {step.command}" if step.command else ""))


def _counted(versions: dict[str, int]) -> str:
    return ", ".join(f"{count} of {version}" for version, count in sorted(versions.items()))


def _named(revision: Revision) -> str:
    return f"{revision.number} {revision.name}" + (" (drops what older code uses)" if revision.contracts else "")

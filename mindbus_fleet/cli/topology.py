"""The commands `topology`: compare the broker with the code, apply, prune, migrate."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import typer

from config.settings import FleetSettings
from mindbus.bus import topology_admin
from mindbus.bus.connection import find_broker, open_transport
from mindbus.bus.topology import Topology, backbone, rungs_of
from mindbus.bus.topology_admin import Difference
from mindbus.cli.console import say, show_json, show_table
from mindbus.cli.environment import read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import require_reachable, run
from mindbus.management import Management, open_management
from mindbus.registry import installed_workers
from mindbus.runtime.service import build, topology_of

app = typer.Typer(no_args_is_help=True, help="Keep the broker's queues and exchanges as the code says.")


@dataclass(frozen=True)
class _Broker:
    amqp_url: str
    management: Management


@app.command()
def apply(as_json: Json = False) -> None:
    """Declare what is missing; workers do so for themselves when they start.

    [bold]Example[/bold]

    mindbus topology apply
    """

    async def work() -> int:
        async with _broker() as broker:
            wanted = await _wanted(read_settings(FleetSettings))
            await topology_admin.apply(broker.amqp_url, wanted)
        return len({queue.name for queue in wanted.queues})

    count = run(work())
    if as_json:
        show_json({"queues": count})
    else:
        say(f"{count} queues are declared")


@app.command()
def diff(as_json: Json = False) -> None:
    """Show where the broker differs from the code; exit 1 if it does.

    [bold]Example[/bold]

    mindbus topology diff
    """

    async def work() -> list[Difference]:
        async with _broker() as broker:
            return await topology_admin.compare(broker.management, await _wanted(read_settings(FleetSettings)))

    found = run(work())
    if as_json:
        show_json([dataclasses.asdict(difference) for difference in found])
    elif found:
        show_table(("difference", "name", "detail"), ((x.kind, x.name, x.detail) for x in found))
    else:
        say("Broker and code agree.")
    if found:
        raise typer.Exit(1)


@app.command()
def prune(as_json: Json = False) -> None:
    """Delete exchanges the code does not know, and such queues if they are empty and unused.

    [bold]Example[/bold]

    mindbus topology prune
    """

    async def work() -> list[str]:
        async with _broker() as broker:
            return await topology_admin.prune(
                broker.amqp_url, broker.management, await _wanted(read_settings(FleetSettings))
            )

    _tell("pruned", run(work()), as_json=as_json)


@app.command()
def migrate(as_json: Json = False) -> None:
    """Rebuild queues whose arguments have changed; their messages are kept, their workers must be stopped.

    [bold]Example[/bold]

    mindbus topology migrate
    """

    async def work() -> list[str]:
        async with _broker() as broker:
            return await topology_admin.migrate(
                broker.amqp_url, broker.management, await _wanted(read_settings(FleetSettings))
            )

    _tell("migrated", run(work()), as_json=as_json)


@asynccontextmanager
async def _broker() -> AsyncIterator[_Broker]:
    settings = read_settings(FleetSettings)
    amqp_url = find_broker(settings)
    await require_reachable(amqp_url)
    async with open_management(settings, amqp_url) as management:
        yield _Broker(amqp_url, management)


async def _wanted(settings: FleetSettings) -> Topology:
    """The topology of all installed workers; they are built, but not started."""
    wanted = backbone(rungs_of(settings.retry_rungs))
    for name, make in installed_workers().checked().entries.items():
        service = build(make, name, settings, open_transport(settings, name))
        wanted += topology_of(service.worker, settings)
    return wanted


def _tell(done: str, names: list[str], *, as_json: bool) -> None:
    if as_json:
        show_json({done: names})
    else:
        say(f"{done} {len(names)}" + "".join(f"\n  {name}" for name in names))

"""The commands `topology`: compare the broker with the code, apply, prune, migrate."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer

from config.settings import FleetSettings
from mindbus.bus import topology_admin
from mindbus.bus.connection import find_broker, open_transport
from mindbus.bus.topology import Topology, backbone, rungs_of
from mindbus.bus.topology_admin import Difference
from mindbus.cli.console import say, show_result, show_table
from mindbus.cli.errors import read_settings
from mindbus.cli.options import Json
from mindbus.cli.session import require_reachable, run
from mindbus.management import Management, open_management
from mindbus.registry import installed_workers
from mindbus.runtime.service import build, topology_of

T = TypeVar("T")
app = typer.Typer(no_args_is_help=True, help="Keep the broker's queues and exchanges as the code says.")
Work = Callable[[str, Management, Topology], Awaitable[T]]


@app.command()
def apply(as_json: Json = False) -> None:
    """Declare what is missing; workers do so for themselves when they start.

    [bold]Example[/bold]

    mindbus topology apply
    """

    async def declare(amqp_url: str, _management: Management, wanted: Topology) -> int:
        await topology_admin.apply(amqp_url, wanted)
        return len({queue.name for queue in wanted.queues})

    count = run(_on_broker(declare))
    show_result({"queues": count}, f"{count} queues are declared", as_json=as_json)


@app.command()
def diff(as_json: Json = False) -> None:
    """Show where the broker differs from the code; exit 1 if it does.

    [bold]Example[/bold]

    mindbus topology diff
    """
    found = run(_on_broker(lambda _url, management, wanted: topology_admin.compare(management, wanted)))
    show_result([dataclasses.asdict(each) for each in found], lambda _all: _show_differences(found), as_json=as_json)
    if found:
        raise typer.Exit(1)


@app.command()
def prune(as_json: Json = False) -> None:
    """Delete exchanges the code does not know, and such queues if they are empty and unused.

    [bold]Example[/bold]

    mindbus topology prune
    """
    _show_names("pruned", run(_on_broker(topology_admin.prune)), as_json=as_json)


@app.command()
def migrate(as_json: Json = False) -> None:
    """Rebuild queues whose arguments have changed; their messages are kept, their workers must be stopped.

    [bold]Example[/bold]

    mindbus topology migrate
    """
    _show_names("migrated", run(_on_broker(topology_admin.migrate)), as_json=as_json)


async def _on_broker(work: Work[T]) -> T:
    settings = read_settings(FleetSettings)
    amqp_url = find_broker(settings)
    await require_reachable(amqp_url)
    async with open_management(settings, amqp_url) as management:
        return await work(amqp_url, management, _required_topology(settings))


def _required_topology(settings: FleetSettings) -> Topology:
    """The topology of all installed workers; they are built, but not started."""
    wanted = backbone(rungs_of(settings.retry_rungs))
    for name, make in installed_workers().checked().entries.items():
        service = build(make, name, settings, open_transport(settings, name))
        wanted += topology_of(service.worker, settings)
    return wanted


def _show_differences(differences: list[Difference]) -> None:
    if differences:
        show_table(("difference", "name", "detail"), ((x.kind, x.name, x.detail) for x in differences))
    else:
        say("Broker and code agree.")


def _show_names(done: str, names: list[str], *, as_json: bool) -> None:
    show_result({done: names}, f"{done} {len(names)}" + "".join(f"\n  {name}" for name in names), as_json=as_json)

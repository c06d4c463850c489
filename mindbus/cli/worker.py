"""Run workers in this process."""

import asyncio
from typing import Annotated

import typer

from mindbus.cli.environment import read_settings
from mindbus.cli.session import run
from mindbus.settings import Settings
from mindbus_fleet.supervision.hosting import die_with_parent, host, stop_on_signals, until_broker_is_known
from workers.fleet import whole_fleet
from workers.third_party import Maker

app = typer.Typer()

# Longer than a drain, for a worker whose supervisor is gone.
_ORPHAN_MARGIN_S = 10.0


@app.command()
def worker(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Workers to run, side by side.")],
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run workers in this process until SIGTERM or Ctrl-C.

    [bold]Examples[/bold]

    mindbus worker storage

    mindbus worker researcher ideator critic
    """
    settings = read_settings()
    if supervised:
        die_with_parent(settings.drain_s + _ORPHAN_MARGIN_S)
    fleet = whole_fleet()
    makers = {name: fleet.maker(name) for name in names}
    run(_run_workers(makers, settings, supervised=supervised))


async def _run_workers(makers: dict[str, Maker], settings: Settings, *, supervised: bool) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    if supervised:
        await until_broker_is_known(settings)
    await host(makers, settings, stop)

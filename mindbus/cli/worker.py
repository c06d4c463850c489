"""The command `worker`: runs workers in this process."""

import asyncio
from typing import Annotated

import typer

from mindbus.cli.errors import read_settings
from mindbus.cli.session import run
from mindbus.registry import Factory, installed_workers, workers_at
from mindbus.settings import Settings
from mindbus.worker_host import die_with_parent, host, spare_collections, stop_on_signals, wait_for_broker

app = typer.Typer()

# Longer than a drain, for a worker whose supervisor is gone.
_ORPHAN_MARGIN_S = 10.0


@app.command()
def worker(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="Installed workers by name, your own as module:Class; they run side by side."
        ),
    ],
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run workers in this process until SIGTERM or Ctrl-C.

    [bold]Examples[/bold]

    mindbus worker storage

    mindbus worker researcher ideator critic

    mindbus worker counter:CounterWorker      the class in counter.py, in this folder
    """
    settings = read_settings()
    if supervised:
        die_with_parent(settings.drain_s + _ORPHAN_MARGIN_S)
    makers = {name: factory for target in names for name, factory in _factories(target).items()}
    spare_collections()
    run(_run_workers(makers, settings, supervised=supervised))


def _factories(target: str) -> dict[str, Factory]:
    is_own = ":" in target or target.endswith(".py")
    return workers_at(target) if is_own else {target: installed_workers().require(target).load()}


async def _run_workers(makers: dict[str, Factory], settings: Settings, *, supervised: bool) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    if supervised:
        await wait_for_broker(settings)
    await host(makers, settings, stop)

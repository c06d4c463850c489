"""The command `worker`: runs workers in this process."""

import asyncio
from typing import Annotated

import typer

from mindbus.cli.errors import read_settings
from mindbus.cli.session import run
from mindbus.files.disk import allow_many_open_files, keep_private
from mindbus.registry import Factory, installed_workers, workers_at
from mindbus.settings import Settings
from mindbus.tasks import stop_on_signals
from mindbus.worker_host import (
    die_with_parent,
    host,
    show_stacks,
    skip_last_collection,
    spare_collections,
    wait_for_broker,
    watchdog,
)

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
    show_stacks()
    allow_many_open_files()
    if supervised:
        die_with_parent(settings.drain_s + _ORPHAN_MARGIN_S)
    keep_private(settings.data_dir)
    is_private = settings.amqp_url is None
    makers = {name: make for target in names for name, make in factories_at(target, is_private=is_private).items()}
    spare_collections()
    run(_run_workers(makers, settings, supervised=supervised))
    skip_last_collection()


def factories_at(target: str, *, is_private: bool) -> dict[str, Factory]:
    """Workers by name: an installed one, or those of one's own at `module:Class` or in a file.

    Raises UnknownWorker, BrokenWorker, WorkerNameTaken.
    """
    is_own = ":" in target or target.endswith(".py")
    if not is_own:
        return {target: installed_workers().require(target).load()}
    found = workers_at(target)
    # On a broker of one's own, the administrator says whose name it is.
    if is_private:
        for name in found:
            installed_workers().require_free(name, target)
    return found


async def _run_workers(makers: dict[str, Factory], settings: Settings, *, supervised: bool) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    if supervised:
        await wait_for_broker(settings)
    # A supervisor kills what is frozen itself, and sooner.
    async with watchdog(0 if supervised else settings.watchdog_s):
        await host(makers, settings, stop)

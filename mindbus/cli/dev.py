"""A worker under development: one file, run against the fleet on this machine, started anew when it changes."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Annotated

import typer

from mindbus.bus.connection import find_broker
from mindbus.cli.console import note
from mindbus.cli.errors import read_settings
from mindbus.cli.session import require_reachable, run
from mindbus.settings import Settings
from mindbus.tasks import stop_on_signals

app = typer.Typer()

_POLL_S = 0.2
_STOP_MARGIN_S = 5.0

Snapshot = dict[Path, int]


@app.command()
def dev(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A Python file with Worker classes.")],
) -> None:
    """Run the workers of one file against the fleet on this machine; restart them when the file changes.

    Python files beside it are watched, too. It is no package, needs no entry point, and the fleet goes on meanwhile.

    [bold]Example[/bold]

    mindbus dev counter.py
    """
    run(_develop(file, read_settings()))


async def _develop(file: Path, settings: Settings) -> None:
    await require_reachable(find_broker(settings))
    stop = asyncio.Event()
    stop_on_signals(stop)
    note(f"Running {file.name}; it restarts when a *.py beside it changes. Ctrl-C stops it.")
    while not stop.is_set():
        before = _snapshot(file)
        process = await _start(file, settings)
        try:
            await _wait_for_change(file, before, process, stop)
        finally:
            await _end(process, settings.drain_s + _STOP_MARGIN_S)
        if not stop.is_set():
            note(f"{file.name} has changed; restarting")


async def _wait_for_change(file: Path, before: Snapshot, process: Process, stop: asyncio.Event) -> None:
    is_running = True
    stopped = asyncio.create_task(stop.wait())
    while not stop.is_set() and _snapshot(file) == before:
        if is_running and process.returncode is not None:
            is_running = False
            note(f"{file.name} ended with code {process.returncode}; waiting for a change")
        await asyncio.wait({stopped}, timeout=_POLL_S)
    stopped.cancel()


async def _start(file: Path, settings: Settings) -> Process:
    # Standard input closes with this process, however that ends: `--supervised` then ends the workers.
    command = (sys.executable, "-m", "mindbus.cli.main", "worker", "--supervised", str(file))
    return await asyncio.create_subprocess_exec(
        *command, env=settings.environment(), stdin=PIPE, start_new_session=True
    )


async def _end(process: Process, within_s: float) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(within_s):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _snapshot(file: Path) -> Snapshot:
    """Times of modification of the file and the Python files beside it."""
    return {path: path.stat().st_mtime_ns for path in {*file.parent.glob("*.py"), file} if path.exists()}

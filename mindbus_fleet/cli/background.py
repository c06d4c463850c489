"""A fleet in the background: starting it, waiting until it is ready, stopping it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import typer

from bus_schema.codes import Code
from config.settings import FleetSettings
from mindbus.cli.console import note, show_result
from mindbus.cli.errors import INTERRUPTED, CommandError, read_settings
from mindbus.cli.options import Json
from mindbus.files.disk import keep_private
from mindbus.health import Health, HealthFolder, is_alive
from mindbus.running_fleets import where_to_look
from mindbus_fleet.supervision.children import Group, rotate_logs, tail
from mindbus_fleet.supervision.run_folder import AlreadyUp, RunFolder, UpState
from mindbus_fleet.supervision.supervisor import PlainSettings, Plan

_POLL_S = 0.05
_LINES_SHOWN = 25

# Draining workers, then a broker that closes its files.
_MARGIN_S = 60.0
_LOOKS_S = 0.1
_SAID_EVERY_S = 1.0

app = typer.Typer()


class ReadinessReport:
    """Prints each worker as it reports that it is ready, while a fleet starts."""

    def __init__(self, settings: FleetSettings, workers: Collection[str], *, is_silent: bool) -> None:
        self._health = HealthFolder(settings)
        self._awaited = set() if is_silent else set(workers)

    def look(self) -> None:
        """Say who has come since the last look, in the order in which they came."""
        well = [each for each in self._health.all_here() if each.name in self._awaited]
        for health in sorted(well, key=lambda each: each.time):
            if self._health.trouble(health) is None and health.name in self._awaited:
                self._awaited.remove(health.name)
                note(f"  {health.name:<16} {health.state.replace('_', ' ')}")

    async def keep_looking(self) -> None:
        while self._awaited:
            self.look()
            await asyncio.sleep(_LOOKS_S)


def require_free(settings: FleetSettings) -> None:
    """Wait for the end of what a dead supervisor has left on the data folder. Raises AlreadyUp, OrphansRemain."""
    waiting = "The supervisor of the last fleet has died; waiting until its workers have ended …"
    RunFolder(settings).require_free(on_wait=lambda: note(waiting))


def running_fleet(settings: FleetSettings) -> UpState | None:
    """The fleet that runs on the data folder, once it is ready; None where none does.

    Raises CommandError where it ends instead, OrphansRemain.
    """
    folder = RunFolder(settings)
    try:
        require_free(settings)
    except AlreadyUp:
        pass
    else:
        return None
    is_said = False
    while folder.is_taken():
        state = folder.state()
        if state is not None and state.status == "ready":
            return state
        if not is_said:
            is_said = True
            note("MindBus is starting here already; waiting until it is ready …")
        time.sleep(_POLL_S)
    raise CommandError(f"the fleet that was starting here has ended: see {folder.logs}", Code.UNAVAILABLE)


def start_detached(
    settings: FleetSettings, groups: Sequence[Group], broken: dict[str, str], look: Callable[[], object]
) -> UpState:
    """Start a supervisor in a session of its own; returns when the fleet is ready, looks again and again until then.

    Raises CommandError.
    """
    folder = RunFolder(settings)
    keep_private(folder.data_dir)
    folder.logs.mkdir(exist_ok=True)
    log = folder.logs / "up.log"
    rotate_logs(folder.logs)
    began_at = log.stat().st_size if log.exists() else 0
    plan = Plan(
        PlainSettings.of(settings), tuple(groups), broken, str(folder.logs), settings.log_level, settings.log_format
    )
    process = _spawn_supervisor(plan, log)
    try:
        # Through a pipe: the settings may hold passwords.
        with cast("IO[bytes]", process.stdin) as pipe:
            pipe.write(plan.as_json().encode())
        return _until_ready(process, folder, began_at, look)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGTERM)
        note("The start is called off; what had begun stops in the background. `mindbus down` waits for its end.")
        raise typer.Exit(INTERRUPTED) from None
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    finally:
        # Popen complains of a child that outlives it, which is what this one is for.
        process.returncode = process.returncode or 0


def _spawn_supervisor(plan: Plan, log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "mindbus_fleet.supervision.supervisor"]
    with log.open("ab") as sink:
        return subprocess.Popen(
            command,
            env=plan.settings.variables,
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )


def _until_ready(
    process: "subprocess.Popen[bytes]", folder: RunFolder, log_from: int, look: Callable[[], object]
) -> UpState:
    while process.poll() is None:
        look()
        state = folder.state()
        if state is not None and state.pid == process.pid and state.status == "ready":
            return state
        time.sleep(_POLL_S)
    log = folder.logs / "up.log"
    raise CommandError(
        f"MindBus did not come up. The end of {log}:\n{tail(log, _LINES_SHOWN, log_from)}", Code.UNAVAILABLE
    )


def end_fleet(settings: FleetSettings, *, is_silent: bool) -> bool:
    """Stop what runs on the data folder; returns whether anything did. Raises CommandError when it does not end."""
    folder = RunFolder(settings)
    if not folder.is_taken():
        _forget(folder)
        return False
    pid = folder.live_supervisor()
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    drain = DrainReport(settings, is_silent=is_silent)
    deadline = time.monotonic() + settings.drain_s + _MARGIN_S
    while folder.is_taken():
        if time.monotonic() > deadline:
            alive = ", ".join(str(each) for each in (pid, *folder.live_workers()) if each is not None)
            raise CommandError(f"it does not end: see {folder.logs}, then end process {alive} yourself")
        drain.look()
        time.sleep(_POLL_S)
    _forget(folder)
    return True


def _forget(folder: RunFolder) -> None:
    try:
        folder.forget_killed()
    except OSError as refused:
        note(f"warning: {folder.root} still says that a fleet runs here: {refused.strerror}", style="yellow")


class DrainReport:
    """Prints which workers a fleet that stops still waits for, from a second on, whenever that has changed."""

    def __init__(self, settings: FleetSettings, *, is_silent: bool, every_s: float = _SAID_EVERY_S) -> None:
        self._health, self._every_s = HealthFolder(settings), every_s
        self._next_s = float("inf") if is_silent else time.monotonic() + every_s
        self._said = ""

    def look(self) -> None:
        """Print it, if it is time."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + self._every_s
        draining = [each for each in self._health.all_here() if is_alive(each.pid)]
        text = f"Draining: {', '.join(map(_drain_of, draining))}" if draining else "Stopping RabbitMQ …"
        if text != self._said:
            note(text)
            self._said = text


def _drain_of(worker: Health) -> str:
    messages = f" ({worker.at_work} message{'s' if worker.at_work != 1 else ''})" if worker.at_work else ""
    return f"{worker.name}{messages}"


def say_stopping() -> None:
    """Tell whoever has pressed Ctrl-C that it was heard."""
    note("Stopping …")


@app.command()
def down(as_json: Json = False) -> None:
    """Stop what `mindbus up -d` has started on this data folder; return when it is gone.

    Says which workers still finish what they have begun, where that takes more than a second.
    """
    settings = read_settings(FleetSettings)
    try:
        was_up = end_fleet(settings, is_silent=as_json)
    except KeyboardInterrupt:
        note("The fleet goes on stopping in the background; `mindbus status` says when it is down.")
        raise typer.Exit(INTERRUPTED) from None
    text = "Stopped." if was_up else f"Nothing runs here. {where_to_look(settings)}"
    show_result({"stopped": was_up}, text, as_json=as_json)

"""The command `logs`: what workers of this data folder have logged, and log now."""

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bus_schema.codes import Code
from config.settings import FleetSettings
from mindbus.cli.console import note, say_data, show_json_line
from mindbus.cli.errors import CommandError, UsageError, read_settings
from mindbus.cli.options import Json
from mindbus.registry import installed_workers
from mindbus.running_fleets import where_to_look
from mindbus.terminal import escape_controls
from mindbus_fleet.supervision.run_folder import RunFolder

app = typer.Typer()

_LOOKS_S = 0.2
_BLOCK_BYTES = 64 * 1024
_SUPERVISOR = "up"


@app.command()
def logs(
    worker: Annotated[
        str | None, typer.Argument(metavar="[WORKER]", help="Only this worker's process; `up` is the supervisor.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until Ctrl-C.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, help="How many of the last lines to show.")
    ] = 50,
    as_json: Json = False,
) -> None:
    """Show the last lines that workers have logged; with -f those that come, too.

    Workers that share a process share its log: all of it is shown.

    [bold]Examples[/bold]

    mindbus logs

    mindbus logs storage -f

    mindbus logs up -n 200          how the supervisor started and restarted things
    """
    settings = read_settings(FleetSettings)
    folder = RunFolder(settings)
    files = _files_of(worker, folder) if worker is not None else sorted(folder.logs.glob("*.log"))
    if not files:
        raise CommandError(f"nothing has been logged here. {where_to_look(settings)}", Code.NOT_FOUND)
    logs = [_Log(file) for file in files]
    shown = sorted((line for log in logs for line in log.last(lines)), key=lambda line: line.at)[-lines or len(logs) :]
    for line in shown if lines else ():
        _show(line, as_json=as_json)
    if follow:
        _follow(logs, as_json=as_json)


@dataclass(frozen=True)
class _Line:
    process: str
    at: str
    text: str


class _Log:
    """A log file, read on from where it was left; one that is put aside is begun anew."""

    def __init__(self, file: Path) -> None:
        self._file, self._offset, self._rest, self._at = file, 0, b"", ""

    def last(self, count: int) -> list[_Line]:
        """The last lines; reading goes on after them."""
        with self._file.open("rb") as log:
            end = log.seek(0, 2)
            start, found = end, b""
            while start > 0 and found.count(b"\n") <= count:
                start = max(0, start - _BLOCK_BYTES)
                log.seek(start)
                found = log.read(end - start)
        self._offset = end
        whole, newline, self._rest = found.rpartition(b"\n")
        lines = list(self._lines((whole + newline).splitlines()))
        return lines[-count:] if count else []

    def more(self) -> Iterator[_Line]:
        """Lines that have come since."""
        try:
            size = self._file.stat().st_size
        except FileNotFoundError:
            return
        if size < self._offset:
            self._offset, self._rest = 0, b""
        if size == self._offset:
            return
        with self._file.open("rb") as log:
            log.seek(self._offset)
            read = self._rest + log.read()
            self._offset = log.tell()
        whole, newline, self._rest = read.rpartition(b"\n")
        yield from self._lines((whole + newline).splitlines())

    def _lines(self, lines: list[bytes]) -> Iterator[_Line]:
        for raw in lines:
            text = raw.decode("utf-8", errors="replace")
            # A line without a time, such as one of a traceback, goes with the one before it.
            if found := _TIME.match(text):
                self._at = found[1]
            yield _Line(self._file.stem, self._at, text)


# At the start of a line; in JSON the value of a field.
_TIME = re.compile(r'(?:\{.*?"timestamp": ")?(\d{4}-\d\d-\d\dT[\d:.]+)')


def _follow(logs: list[_Log], *, as_json: bool) -> None:
    if not as_json:
        note("Following the logs; Ctrl-C ends it.")
    try:
        while True:
            for line in sorted((line for log in logs for line in log.more()), key=lambda line: line.at):
                _show(line, as_json=as_json)
            time.sleep(_LOOKS_S)
    except KeyboardInterrupt:
        return


def _show(line: _Line, *, as_json: bool) -> None:
    if as_json:
        show_json_line({"process": line.process, "line": line.text})
    else:
        say_data(f"{line.process:<8} {escape_controls(line.text)}")
    sys.stdout.flush()


def _files_left(worker: str, folder: RunFolder) -> list[Path]:
    """Logs of a fleet that has ended: of that process, or all, as nothing says any more which had run the worker."""
    file = folder.logs / f"{worker}.log"
    if file.exists():
        return [file]
    # Raises UnknownWorker with the nearest name.
    installed_workers().require(worker)
    left = sorted(folder.logs.glob("*.log"))
    if left:
        note(f"No fleet runs here now, so it is not known which process ran {worker}: all logs are shown.")
    return left


def _files_of(worker: str, folder: RunFolder) -> list[Path]:
    """The log of the process that runs a worker. Raises UsageError, CommandError."""
    state = folder.state()
    if state is None and (left := _files_left(worker, folder)):
        return left
    processes = {name: process.name for process in (state.workers if state else ()) for name in process.workers}
    name = processes.get(worker, worker)
    file = folder.logs / f"{name}.log"
    if name != _SUPERVISOR and name not in processes.values() and worker not in processes:
        # Raises UnknownWorker with the nearest name.
        installed_workers().require(worker)
        if not file.exists():
            raise CommandError(
                f"{worker} does not run here, so it has no log: start it with `mindbus up`; "
                f"`mindbus worker {worker}` logs to its terminal",
                Code.NOT_FOUND,
            )
    if not file.exists():
        raise UsageError(f"the fleet runs in a terminal: it logs there, not to {folder.logs}")
    return [file]

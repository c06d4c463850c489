"""Health files: the state of each worker process, written with every heartbeat."""

import errno
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from bus_schema.codes import Code, State
from mindbus.errors import MindBusError
from mindbus.files.disk import write_private
from mindbus.run_dir import RunSettings

MISSED_HEARTBEATS = 3
# On it a worker process writes the stacks of its threads to standard error, however busy or blocked it is.
SHOWS_STACKS = signal.SIGUSR2
# Files of containers that are long gone: nobody else will ever remove them.
_ABANDONED_AFTER = timedelta(hours=1)


def _utc_now() -> datetime:
    # Not the bus's own: a probe that imports the bus to read a file costs a second of CPU.
    return datetime.now(UTC)


class WorkerUnhealthy(MindBusError, code=Code.UNAVAILABLE):
    """No worker of this name is ready on this host."""


@dataclass(frozen=True)
class Health:
    """One worker in one process."""

    name: str
    host: str
    pid: int
    state: State
    time: datetime
    # Messages that are being handled, as of a worker that drains.
    at_work: int = 0
    # Reason why it is not well, where it knows one; a warning of one that is.
    note: str = ""

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Raises ValueError, KeyError or TypeError where the text is not that of a health file."""
        fields = json.loads(text)
        time = datetime.fromisoformat(fields["time"])
        if time.tzinfo is None:
            raise ValueError(f"{time} has no time zone")
        return cls(
            str(fields["name"]),
            str(fields["host"]),
            int(fields["pid"]),
            State(fields["state"]),
            time,
            fields.get("at_work", 0),
            str(fields.get("note", "")),
        )

    def as_json(self) -> dict[str, Any]:
        """Fields of the file."""
        own = {"name": self.name, "host": self.host, "pid": self.pid, "state": self.state}
        return own | {
            "time": self.time.isoformat().replace("+00:00", "Z"),
            "ready": self.ready,
            "at_work": self.at_work,
            "note": self.note,
        }

    @property
    def ready(self) -> bool:
        """Whether it consumes from its queues just now."""
        return self.state is State.READY

    @property
    def is_well(self) -> bool:
        """Whether it consumes, or would as soon as the instance that leads is gone."""
        return self.state is not State.UNREADY


class HealthFolder:
    """One file per worker and process, replaced at every heartbeat."""

    def __init__(self, settings: RunSettings, clock: Callable[[], datetime] = _utc_now) -> None:
        self._folder = settings.run_dir / "health"
        self._stale_after = timedelta(seconds=settings.heartbeat_s * MISSED_HEARTBEATS)
        self._clock = clock
        self._host = socket.gethostname()

    def report(self, name: str, state: State, note: str = "", *, at_work: int = 0) -> None:
        """Write the file of a worker of this process; `at_work` is the number of messages that it handles.

        Raises OSError; on a full disk the file of the report before is touched, so that the worker is not taken for a
        frozen one. Where this process may open no more files, it had better be: the next has all of them closed.
        """
        health = Health(name, self._host, os.getpid(), state, self._clock(), at_work, note)
        file = self._file(name, os.getpid())
        try:
            write_private(file, json.dumps(health.as_json(), separators=(",", ":")))
        except OSError as error:
            if error.errno != errno.EMFILE:
                with suppress(OSError):
                    os.utime(file)
            raise

    def keep_reason(self, name: str, reason: str) -> None:
        """Write, instead of what earlier processes have left, why a worker of this one ends. Raises OSError."""
        for health in self.all_here():
            if health.name == name and not is_alive(health.pid):
                self._file(name, health.pid).unlink(missing_ok=True)
        self.report(name, State.UNREADY, reason)

    def last_sign(self, pid: int) -> float:
        """Modification time, in seconds since 1970, of the newest file of a process here; 0.0 where it has none."""
        files = self._folder.glob(f"*@{self._host}.{pid}.json")
        return max((mtime for file in files if (mtime := _modified(file)) is not None), default=0.0)

    def forget(self, name: str) -> None:
        """Remove the file of a worker of this process."""
        self._file(name, os.getpid()).unlink(missing_ok=True)

    def all_here(self) -> list[Health]:
        """All health files of this host, those of dead processes included."""
        files = (self._read(file) for file in sorted(self._folder.glob(f"*@{self._host}.*.json")))
        return [health for health in files if health is not None]

    def require(self, name: str) -> Health:
        """The freshest worker of that name here that is well. Raises WorkerUnhealthy with the reason."""
        instances = sorted(
            (health for health in self.all_here() if health.name == name), key=lambda health: health.time
        )
        if not instances:
            raise WorkerUnhealthy(
                f"{name} does not run on this host: start it with `mindbus up` or `mindbus worker {name}`"
            )
        well = [health for health in instances if self.trouble(health) is None]
        if not well:
            raise WorkerUnhealthy(f"{name} {self.trouble(instances[-1])} (process {instances[-1].pid})")
        return well[-1]

    def consuming(self) -> set[str]:
        """Names of the workers here that consume from their queues."""
        return {health.name for health in self.all_here() if health.ready and self.trouble(health) is None}

    def trouble(self, health: Health) -> str | None:
        """Reason why a worker is unhealthy, or None."""
        silent = self._clock() - health.time
        if not is_alive(health.pid):
            return f"has died: {health.note}" if health.note and not health.is_well else "has died"
        if silent > self._stale_after:
            return f"has been silent for {silent.total_seconds():.0f} s; it hangs or is frozen"
        if health.is_well:
            return None
        return health.note or "runs but does not consume from its queues; is RabbitMQ reachable?"

    def sweep(self) -> None:
        """Remove the files of dead processes."""
        for health in self.all_here():
            if not is_alive(health.pid):
                self._file(health.name, health.pid).unlink(missing_ok=True)
        for file in self._folder.glob("*.json"):
            health_or_none = self._read(file)
            if health_or_none is None or self._clock() - health_or_none.time > _ABANDONED_AFTER:
                file.unlink(missing_ok=True)

    def _file(self, name: str, pid: int) -> Path:
        return self._folder / f"{name}@{self._host}.{pid}.json"

    def _read(self, file: Path) -> Health | None:
        try:
            return Health.read(file.read_bytes())
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None


def _modified(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None


_ENDED = ("Z", "X")  # states in /proc: zombie, dead


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent to notice does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # no such folder on macOS
    return status.rpartition(")")[2].split()[0] not in _ENDED

"""Workers in processes of their own, for benchmarks and for tests that kill them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

from config.settings import FleetSettings
from mindbus.health import HealthFolder, WorkerUnhealthy
from mindbus.testing.wait import until

_READY_WITHIN_S = 60


class WorkerProcess(Protocol):
    """What is asked of a process."""

    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class Workers:
    """One process each; whoever is killed is started anew."""

    def __init__(self, settings: FleetSettings, python_path: str = "") -> None:
        self._settings, self._python_path = settings, python_path
        self._processes: dict[str, WorkerProcess] = {}
        self._targets: dict[str, str] = {}

    @property
    def pids(self) -> set[int]:
        """Ids of the running processes."""
        return {process.pid for process in self._processes.values()}

    async def start(self, *names: str) -> None:
        """Return once they consume."""
        for name in names:
            self._processes[name] = self._spawned(self._targets.get(name, name))
        for name in names:
            await until(partial(self._is_ready, name), _READY_WITHIN_S, f"{name} is ready")

    async def start_together(self, *names: str, **own: str) -> None:
        """All of them in one process, as `mindbus up` has its light ones; `own` are not installed, but module:Class."""
        self._targets |= own
        process = self._spawned(*names, *own.values())
        self._processes |= dict.fromkeys((*names, *own), process)
        for name in (*names, *own):
            await until(partial(self._is_ready, name), _READY_WITHIN_S, f"{name} is ready")

    async def kill(self, name: str) -> None:
        """SIGKILL, then a new one."""
        self.strike(name)
        await until(partial(self._is_ready, name), _READY_WITHIN_S, f"{name} is ready")

    def strike(self, name: str) -> None:
        """SIGKILL, then a new one, which is not waited for."""
        self._processes[name].kill()
        self._processes[name].wait()
        self._processes[name] = self._spawned(self._targets.get(name, name))

    def pid_of(self, name: str) -> int:
        """The process of a worker."""
        return self._processes[name].pid

    def _spawned(self, *names: str) -> WorkerProcess:
        command = [sys.executable, "-m", "mindbus.cli.main", "worker", *names]
        return subprocess.Popen(command, env=self._settings.environment() | {"PYTHONPATH": self._python_path})

    def _is_ready(self, name: str) -> bool:
        with suppress(WorkerUnhealthy):
            health = HealthFolder(self._settings).require(name)
            return health.ready and health.pid == self._processes[name].pid
        return False

    def end(self) -> None:
        """All of them, by id."""
        for process in self._processes.values():
            process.kill()
            process.wait()


@contextmanager
def workers_of(settings: FleetSettings, python_path: str = "") -> Iterator[Workers]:
    """None is left when the block ends."""
    workers = Workers(settings, python_path)
    try:
        yield workers
    finally:
        workers.end()

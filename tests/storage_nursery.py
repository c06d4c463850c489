"""A process that has imported all of storage, then forks: whoever is killed often must start fast.

An empty line on its input starts a storage worker, a line with a process and a signal ends one; it answers with the
process. The end of its input ends all of them.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE, Popen

from bus_schema.fleet import State
from config.settings import FleetSettings
from mindbus.health import HealthFolder
from mindbus.logs import configure_logs
from mindbus.registry import Factory, installed_workers
from mindbus.tasks import stop_on_signals
from mindbus.testing.wait import until
from mindbus.worker_host import host

_STARTED_WITHIN_S = 60


class Nursery:
    """Starts storage workers, kills them; `async with` it."""

    def __init__(self, settings: FleetSettings, log: Path) -> None:
        self.settings, self.log = settings, log
        self._health = HealthFolder(settings)
        self._living: list[int] = []
        self._process: Popen[bytes] | None = None

    async def __aenter__(self) -> "Nursery":
        self._process = self._launch()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._process
        # The end of its input is the end of all of them.
        await asyncio.to_thread(self._process.communicate)

    @property
    def living(self) -> list[int]:
        """Those that were started but not killed, the oldest first."""
        return list(self._living)

    async def start(self) -> int:
        """Another one; it is not ready yet."""
        self._living.append(await self._ask(""))
        return self._living[-1]

    async def is_in(self, pid: int, *states: State) -> None:
        """Wait until it is in one of the states."""
        what = f"storage {pid} is {' or '.join(states)}"
        await until(lambda: self._state_of(pid) in states, _STARTED_WITHIN_S, what)

    async def one_leads(self) -> int:
        """Wait until one of those that live consumes; which."""
        leader: int | None = await until(self._leader, _STARTED_WITHIN_S, "a storage worker leads")
        assert leader
        return leader

    async def kill(self, pid: int) -> None:
        """As a power cut would."""
        await self._end(pid, signal.SIGKILL)

    async def stop(self) -> None:
        """All of them, in good order."""
        for pid in self.living:
            await self._end(pid, signal.SIGTERM)

    async def _end(self, pid: int, number: signal.Signals) -> None:
        self._living.remove(pid)
        assert await self._ask(f"{pid} {number.value}") == pid
        self._health.sweep()

    async def _ask(self, line: str) -> int:
        assert self._process
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        return int(await asyncio.to_thread(self._process.stdout.readline))

    def _leader(self) -> int | None:
        return next((pid for pid in self._living if self._state_of(pid) is State.READY), None)

    def _state_of(self, pid: int) -> State | None:
        return next((health.state for health in self._health.all_here() if health.pid == pid), None)

    def _launch(self) -> "Popen[bytes]":
        with self.log.open("ab") as sink:
            command = [sys.executable, "-m", "tests.storage_nursery"]
            return Popen(command, env=self.settings.environment(), stdin=PIPE, stdout=PIPE, stderr=sink)


def _rear() -> None:
    settings = FleetSettings()
    makers = {"storage": installed_workers().require("storage").load()}
    children: list[int] = []
    for line in sys.stdin:
        if order := line.split():
            child, number = map(int, order)
            children.remove(child)
            _end(child, number)
        else:
            child = _born(makers, settings)
            children.append(child)
        print(child, flush=True)
    for child in children:
        _end(child, signal.SIGKILL)


def _born(makers: Mapping[str, Factory], settings: FleetSettings) -> int:
    assert threading.active_count() == 1, "a thread would not survive the fork"
    child = os.fork()
    if not child:
        _work(makers, settings)
    return child


def _end(child: int, number: int) -> None:
    # Its number is its own until it has been waited for, even if it has died of something else.
    os.kill(child, number)
    os.waitpid(child, 0)


def _work(makers: Mapping[str, Factory], settings: FleetSettings) -> None:
    with open(os.devnull, "r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    try:
        asyncio.run(_hosted(makers, settings))
    finally:
        os._exit(0)


async def _hosted(makers: Mapping[str, Factory], settings: FleetSettings) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    await host(makers, settings, stop)


if __name__ == "__main__":
    configure_logs("INFO", "console")
    _rear()

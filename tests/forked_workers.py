"""Workers in processes of their own that are forked from one which has imported them: who is killed is back at once."""

import asyncio
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess

from agents.configuration.prompts import role_names
from benchmarks.servers.workers import Workers
from config.settings import FleetSettings
from mindbus.logs import configure_logs
from mindbus.registry import installed_workers
from mindbus.tasks import stop_on_signals
from mindbus.worker_host import host
from tests.installed import FLEET

_FORKS = multiprocessing.get_context("forkserver")
# No test kills those here that import the libraries of the screens, or of the roles' graphs.
_HEAVY = {"gateway", *role_names()}
_FORKS.set_forkserver_preload([entry.point.module for name, entry in FLEET.items() if name not in _HEAVY])


class _Forked:
    """A forked process, with the methods of one that was started."""

    def __init__(self, process: ForkServerProcess) -> None:
        process.start()
        assert process.pid is not None
        self.pid = process.pid
        self._process = process

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0


class ForkedWorkers(Workers):
    def _spawned(self, *names: str) -> _Forked:
        return _Forked(_FORKS.Process(target=_work, args=(names, self._settings.environment()), daemon=True))


@contextmanager
def forked_workers_of(settings: FleetSettings) -> Iterator[ForkedWorkers]:
    """None is left when the block ends."""
    workers = ForkedWorkers(settings)
    try:
        yield workers
    finally:
        workers.end()


def _work(names: tuple[str, ...], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    configure_logs("INFO", "console")
    asyncio.run(_hosted(names, FleetSettings()))


async def _hosted(names: tuple[str, ...], settings: FleetSettings) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    await host({name: installed_workers().require(name).load() for name in names}, settings, stop)

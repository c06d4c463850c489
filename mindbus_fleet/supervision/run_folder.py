"""The `run/` folder: lock, state and addresses of a running `mindbus up`."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from bus_schema.codes import Code
from mindbus.errors import MindBusError
from mindbus.files.disk import keep_private, lock_file, write_private
from mindbus.health import HealthFolder, is_alive
from mindbus.run_dir import RunSettings, broker_file, gateway_url_file, lock_path, management_file, user_file
from mindbus.running_fleets import register_fleet, unregister_fleet

# A process that was killed is still there for a moment.
_DIES_WITHIN_S = 1.0
# Workers drain when their supervisor dies, then exit, whatever is left to do (see `mindbus worker --supervised`).
_ORPHANS_MARGIN_S = 15.0
_LOOK_AGAIN_S = 0.05
_NOTICE_AFTER_S = 1.0

T = TypeVar("T")


class AlreadyUp(MindBusError, code=Code.CONFLICT):
    """MindBus runs on this data folder already.

    Use it as it is, end it with `mindbus down`, or set MINDBUS_DATA_DIR to another folder for a second one.
    """

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(f"{cleandoc(type(self).__doc__ or '')} ({folder}, process {pid})")


class OrphansRemain(MindBusError, code=Code.CONFLICT):
    """The supervisor that ran on this data folder has died, and processes that it started do not end.

    See the logs, end them yourself, then try again.
    """

    def __init__(self, folder: Path, pids: Sequence[int]) -> None:
        who = f"worker processes {', '.join(map(str, pids))}" if pids else "processes of its broker"
        super().__init__(f"{cleandoc(type(self).__doc__ or '')} ({folder}, {who})")


@dataclass(frozen=True)
class WorkerProcess:
    """One process of the fleet; `pid` is None while it is about to be restarted."""

    name: str
    pid: int | None
    workers: tuple[str, ...]


@dataclass(frozen=True)
class UpState:
    """The whole of `up.json`; it holds the broker's password, so it is for this user's eyes alone."""

    pid: int
    status: Literal["starting", "ready"]
    data_dir: str
    amqp_url: str | None = None
    management_url: str | None = None
    username: str | None = None
    password: str | None = None
    gateway_url: str | None = None
    workers: tuple[WorkerProcess, ...] = ()
    broken: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: bytes) -> Self:
        """The state of which `as_json` are the fields."""
        fields = json.loads(text)
        workers = (WorkerProcess(each["name"], each["pid"], tuple(each["workers"])) for each in fields["workers"])
        return cls(**fields | {"workers": tuple(workers)})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class RunFolder:
    def __init__(self, settings: RunSettings) -> None:
        self.root = settings.run_dir.absolute()
        self.data_dir = settings.data_dir.absolute()
        self.logs = self.data_dir / "logs"
        self._settings = settings
        self._state = self.root / "up.json"
        self._lock = lock_path(self.root)

    def take(self) -> int:
        """The lock as a file descriptor; the workers inherit it, so it is free when all are gone.

        Waits as `require_free` does. Raises AlreadyUp, OrphansRemain.
        """
        keep_private(self.data_dir)
        self.root.mkdir(exist_ok=True, parents=True)
        lock = self._when_free(lambda: lock_file(self._lock))
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        register_fleet(self._settings)
        return lock

    def require_free(self, on_wait: Callable[[], object] = lambda: None) -> None:
        """Return when nothing runs here; what a dead supervisor has left is given the time to end.

        `on_wait` is called once where that takes more than a moment. Raises AlreadyUp, OrphansRemain.
        """
        self._when_free(lambda: None if self.is_taken() else True, on_wait)

    def _when_free(self, attempt: Callable[[], T | None], on_wait: Callable[[], object] = lambda: None) -> T:
        began, is_noticed = time.monotonic(), False
        while (result := attempt()) is None:
            waited_s = time.monotonic() - began
            pid = self.live_supervisor()
            if pid is not None and waited_s > _DIES_WITHIN_S:
                raise AlreadyUp(self.data_dir, pid)
            if waited_s > self._settings.drain_s + _ORPHANS_MARGIN_S:
                raise OrphansRemain(self.data_dir, self.live_workers())
            if pid is None and waited_s > _NOTICE_AFTER_S and not is_noticed:
                is_noticed = True
                on_wait()
            time.sleep(_LOOK_AGAIN_S)
        return result

    def is_taken(self) -> bool:
        """Whether an `up` runs here, or something that it started."""
        if not self._lock.exists():
            return False
        # Not for writing: on a disk that takes no writes a fleet has to be stopped, too.
        probe = os.open(self._lock, os.O_RDONLY)
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(probe)
        return False

    def live_supervisor(self) -> int | None:
        """Process id in the lock file, None where that process has died; valid only while the lock is held."""
        text = self._lock.read_text(encoding="ascii")
        return int(text) if text.isdecimal() and is_alive(int(text)) else None

    def live_workers(self) -> list[int]:
        """Process ids of the recorded workers that have not died; valid only while the lock is held."""
        state = self.state()
        workers = state.workers if state is not None else ()
        return [worker.pid for worker in workers if worker.pid is not None and is_alive(worker.pid)]

    def write_state(self, state: UpState) -> None:
        write_private(self._state, json.dumps(state.as_json(), indent=2, ensure_ascii=False) + "\n")

    def state(self) -> UpState | None:
        try:
            return UpState.read(self._state.read_bytes())
        except FileNotFoundError:
            return None

    def forget_addresses(self) -> None:
        """Remove the addresses of the broker and the gateway, which were valid as long as they ran."""
        settings = self._settings
        users = user_file(settings, "").glob("*")
        for file in (broker_file(settings), management_file(settings), gateway_url_file(settings), *users):
            file.unlink(missing_ok=True)

    def forget_killed(self) -> None:
        """Remove what says that a fleet runs here, unless one does. Raises OSError."""
        if self._lock.exists() and (lock := lock_file(self._lock)) is not None:
            try:
                self.forget()
            finally:
                os.close(lock)

    def forget(self) -> None:
        """Remove all that says that a fleet runs here; for the holder of the lock."""
        self.forget_addresses()
        self._state.unlink(missing_ok=True)
        HealthFolder(self._settings).sweep()
        unregister_fleet()

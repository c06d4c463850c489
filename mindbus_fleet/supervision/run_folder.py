"""The `run/` folder: lock, state and addresses of a running `mindbus up`."""

import fcntl
import os
import time
from inspect import cleandoc
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from bus_schema.replies import Code
from config.settings import FleetSettings
from mindbus.errors import MindBusError
from mindbus.files.disk import lock_file, write_private
from mindbus.health import is_alive

_ENDS_WITHIN_S = 5.0
# A process that was killed is still there for a moment.
_DIES_WITHIN_S = 1.0
_LOOK_AGAIN_S = 0.05


class AlreadyUp(MindBusError, code=Code.CONFLICT):
    """MindBus runs on this data folder already.

    Use it as it is, end it with `mindbus down`, or set MINDBUS_DATA_DIR to another folder for a second one.
    """

    def __init__(self, folder: Path, pid: int | None) -> None:
        who = f"process {pid}" if pid else "a process that is just ending"
        super().__init__(f"{cleandoc(type(self).__doc__ or '')} ({folder}, {who})")


class WorkerProcess(BaseModel):
    """One process of the fleet; `pid` is None while it is about to be restarted."""

    name: str
    pid: int | None
    workers: tuple[str, ...]


class UpState(BaseModel):
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
    broken: dict[str, str] = {}


class RunFolder:
    def __init__(self, settings: FleetSettings) -> None:
        self.root = settings.run_dir.absolute()
        self.data_dir = settings.data_dir.absolute()
        self.logs = self.data_dir / "logs"
        self._state = self.root / "up.json"
        self._lock = self.root / "up.lock"

    def take(self) -> int:
        """The lock as a file descriptor; the workers inherit it, so it is free when all are gone. Raises AlreadyUp.

        What a killed supervisor has left is given a moment to end.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        began = time.monotonic()
        while (lock := lock_file(self._lock)) is None:
            pid = self.supervisor_pid()
            patience_s = _DIES_WITHIN_S if pid and is_alive(pid) else _ENDS_WITHIN_S
            if time.monotonic() - began > patience_s:
                raise AlreadyUp(self.data_dir, pid)
            time.sleep(_LOOK_AGAIN_S)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        return lock

    def is_taken(self) -> bool:
        """Whether an `up` runs here, or something that it started."""
        if not self._lock.exists():
            return False
        probe = os.open(self._lock, os.O_RDWR)
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(probe)
        return False

    def supervisor_pid(self) -> int | None:
        """Process id in the lock file; valid only while the lock is held."""
        text = self._lock.read_text(encoding="ascii")
        return int(text) if text.isdecimal() else None

    def write_state(self, state: UpState) -> None:
        write_private(self._state, state.model_dump_json(indent=2) + "\n")

    def state(self) -> UpState | None:
        try:
            return UpState.model_validate_json(self._state.read_bytes())
        except FileNotFoundError:
            return None

    def forget_state(self) -> None:
        self._state.unlink(missing_ok=True)

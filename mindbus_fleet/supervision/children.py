"""Worker processes, each restarted with back-off when it dies."""

import asyncio
import os
import shutil
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mindbus.health import SHOWS_STACKS
from mindbus.logs import logger
from mindbus.tasks import end

FIRST_DELAY_S = 0.5
# With the start that follows, a worker is back within 15 s of the end of whatever killed it.
LONGEST_DELAY_S = 10.0
# Who has lived that long has recovered from whatever killed the one before.
STABLE_AFTER_S = 60.0
# Writing them takes milliseconds, on a machine that is busy somewhat longer.
_STACKS_S = 0.5
_TAIL_BYTES = 64 * 1024
_LINES_SHOWN = 15
_LARGE_LOG_BYTES = 10 * 1024**2


@dataclass(frozen=True)
class Group:
    """Workers that share a process."""

    name: str
    workers: tuple[str, ...]
    is_third_party: bool = False


@dataclass(frozen=True)
class Launch:
    """Command, environment and log of a worker process; without a log it writes to the terminal."""

    command: Sequence[str]
    environment: Mapping[str, str]
    lock: int
    log: Path | None


class Child:
    """Runs a worker process until it is told to stop; `changed` is called when it starts or ends, may raise OSError."""

    def __init__(self, group: Group, launch: Launch, changed: Callable[[], object]) -> None:
        self.group, self._launch, self._changed = group, launch, changed
        self.deaths = 0
        self._process: Process | None = None
        self._stopping = False
        # Process and time of its last sign of life, and for how long it has been watched without another.
        self._sign: tuple[int | None, float] = (None, 0)
        self._silent_s = 0.0
        self._keeping: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    def start(self) -> None:
        self._keeping = asyncio.create_task(self._keep_alive(), name=f"keep {self.group.name}")

    def restart(self) -> None:
        """End it in good order; it comes back at once."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it on the spot, frozen or not; it comes back at once."""
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end_frozen(self) -> None:
        """Kill it; where its threads stand is written to its log first, as far as it still can."""
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, SHOWS_STACKS)
            await asyncio.sleep(_STACKS_S)
            self.kill()

    async def stop(self, within_s: float) -> None:
        """Let it drain; when that takes too long, kill it."""
        self._stopping = True
        self._signal(signal.SIGTERM)
        if self._process is not None and self.pid is not None:
            try:
                async with asyncio.timeout(within_s):
                    await self._process.wait()
            except TimeoutError:
                logger().warning("worker killed", process=self.group.name, reason="it did not stop in time")
                self.kill()
                await self._process.wait()
        if self._keeping is not None:
            await end(self._keeping)

    def silent_s(self, sign: float, since_last_s: float) -> float:
        """Seconds of watching since the process has given another sign of life.

        They are counted look by look, so that a machine which was asleep takes no worker for a frozen one.
        """
        self._silent_s = self._silent_s + since_last_s if (self.pid, sign) == self._sign else 0.0
        self._sign = self.pid, sign
        return self._silent_s

    def complaint(self, what: str) -> str:
        """Sentence on its workers, with the end of its log."""
        words = tail(self._launch.log, _LINES_SHOWN) if self._launch.log is not None else ""
        return f"{', '.join(self.group.workers)} {what}." + (f" The end of its log:\n{words}" if words else "")

    async def _keep_alive(self) -> None:
        while not self._stopping:
            began = time.monotonic()
            try:
                process = self._process = await self._spawn()
                self._tell()
                ended_with: object = await process.wait()
                self._tell()
            except OSError as error:
                # As where there are no processes or descriptors left, or the log cannot be opened.
                ended_with = error
            if self._stopping:
                return
            if time.monotonic() - began > STABLE_AFTER_S:
                self.deaths = 0
            delay_s = min(FIRST_DELAY_S * 2**self.deaths, LONGEST_DELAY_S)
            self.deaths += 1
            logger().warning(
                "worker died, restarting",
                process=self.group.name,
                workers=list(self.group.workers),
                pid=self._process.pid if self._process is not None else None,
                exit=ended_with if isinstance(ended_with, int) else str(ended_with),
                in_s=delay_s,
            )
            await asyncio.sleep(delay_s)

    def _tell(self) -> None:
        try:
            self._changed()
        except OSError as error:  # as on a full disk: `status` shows what was true before
            logger().error("state of the fleet not written", reason=str(error))

    async def _spawn(self) -> Process:
        log = self._launch.log
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        # No log: to standard error, since standard output belongs to `up`.
        sink = log.open("ab") if log is not None else None
        try:
            return await asyncio.create_subprocess_exec(
                *self._launch.command,
                env=self._launch.environment,
                stdin=PIPE,  # it closes with this process, however that ends
                stdout=sink or sys.__stderr__,
                stderr=sink or sys.__stderr__,
                start_new_session=True,
                pass_fds=(self._launch.lock,),
            )
        finally:
            if sink is not None:
                sink.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def rotate_logs(folder: Path) -> None:
    """Put logs that have grown large aside, also those that somebody writes to; the ones before go. Raises OSError."""
    for log in folder.glob("*.log"):
        if log.stat().st_size > _LARGE_LOG_BYTES:
            # Whoever appends to a file goes on at its new end. What comes between the two calls is lost.
            shutil.copyfile(log, log.with_suffix(".log.1"))
            os.truncate(log, 0)


def tail(file: Path, lines: int, since: int = 0) -> str:
    """The last lines of a log, as far as they were written after its first `since` bytes."""
    if not file.exists():
        return ""
    with file.open("rb") as log:
        log.seek(max(since, file.stat().st_size - _TAIL_BYTES))
        text = log.read().decode("utf-8", errors="replace")
    return "\n".join(text.splitlines()[-lines:])

"""Child processes that end with this Python process, however it ends."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen

# The guard's standard input closes when its parent dies, even by SIGKILL; it then kills the process groups whose
# numbers it has read. Linux alone could do it without a guard (PR_SET_PDEATHSIG), but there the signal comes when
# the *thread* ends that started the process.
GUARD = """
groups=
while read -r line; do
  if [ "$line" = done ]; then exit 0; fi
  groups="$groups $line"
done
for group in $groups; do kill -KILL "-$group"; done
"""


class Guarded:
    def __init__(self, folder: Path, environment: dict[str, str], lock: int) -> None:
        """The processes and their guard inherit the lock: it is held until the last of them is gone."""
        self.folder = folder
        self.environment = environment
        self.lock = lock
        self.guard = self._launch(["/bin/sh", "-c", GUARD], DEVNULL, stdin=PIPE)
        self.processes: list[Popen[bytes]] = []

    @property
    def all_live(self) -> bool:
        return all(process.poll() is None for process in self.processes)

    def launch(self, command: Sequence[str], output: Path) -> Popen[bytes]:
        """Start a process in a session of its own, so that Ctrl-C in a terminal does not reach it."""
        with output.open("wb") as sink:
            process = self._launch(command, sink.fileno())
        self.processes.append(process)
        self._tell_guard(str(process.pid))
        return process

    async def end(self) -> None:
        for process in reversed(self.processes):
            kill_group(process)
            await wait_for_exit(process)
        self._tell_guard("done")
        if self.guard.stdin is not None:
            with suppress(BrokenPipeError):
                self.guard.stdin.close()
        await wait_for_exit(self.guard)

    def _launch(self, command: Sequence[str], output: int, stdin: int = DEVNULL) -> Popen[bytes]:
        return Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=stdin,
            stdout=output,
            stderr=STDOUT,
            start_new_session=True,
            pass_fds=(self.lock,),
        )

    def _tell_guard(self, line: str) -> None:
        if self.guard.stdin is not None:
            with suppress(BrokenPipeError):
                self.guard.stdin.write(f"{line}\n".encode())
                self.guard.stdin.flush()


def send_to_group(leader: Popen[bytes], number: signal.Signals) -> None:
    """Signal a process with all of its group, unless it has ended."""
    if leader.poll() is None:
        os.killpg(leader.pid, number)


def kill_group(leader: Popen[bytes]) -> None:
    """Kill a process with all of its group, of which some may outlive it."""
    with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group that has ended
        os.killpg(leader.pid, signal.SIGKILL)


async def wait_for_exit(process: Popen[bytes], within_s: float = float("inf")) -> bool:
    """Whether it ended in time."""
    deadline = time.monotonic() + within_s
    while process.poll() is None:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True

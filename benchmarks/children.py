"""A process that plays one part in a measurement."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.jobs import Job
from benchmarks.participant import READY

_PATIENCE_S = 300.0
_ROOT = Path(__file__).parents[1]


class ParticipantFailed(Exception):
    """A process of the benchmark failed; its last words follow."""


class Participant:
    def __init__(self, process: asyncio.subprocess.Process, job: Job) -> None:
        self._process, self._job = process, job

    async def wait_ready(self) -> None:
        """Until it is connected."""
        line = await self._line()
        if line.strip() != READY:
            raise await self._failed()

    async def result(self) -> str:
        """What it tells at its end, as JSON; one that works until it is told to stop is told so."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        line = await self._line()
        if await self._process.wait() != 0 or not line:
            raise await self._failed()
        return line

    def rss_mib(self) -> float:
        """Its resident memory just now."""
        command = ["ps", "-o", "rss=", "-p", str(self._process.pid)]
        return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout) / 1024

    async def end(self) -> None:
        """Whether or not it is done."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def _line(self) -> str:
        if self._process.stdout is None:
            return ""
        async with asyncio.timeout(_PATIENCE_S):
            return (await self._process.stdout.readline()).decode()

    async def _failed(self) -> ParticipantFailed:
        _out, errors = await self._process.communicate()
        return ParticipantFailed(f"{self._job.contestant} {self._job.role}\n{errors.decode(errors='replace')}")


@asynccontextmanager
async def participant(job: Job) -> AsyncIterator[Participant]:
    """Start a process; the job goes through its standard input, since it holds the broker's password."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "benchmarks.participant"]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=_ROOT, stdin=pipe, stdout=pipe, stderr=pipe, limit=16 * 2**20
    )
    child = Participant(process, job)
    try:
        if process.stdin is not None:
            process.stdin.write(job.model_dump_json().encode() + b"\n")
            await process.stdin.drain()
        yield child
    finally:
        await child.end()

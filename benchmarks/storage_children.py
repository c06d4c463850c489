"""A process of the storage benchmark: told line by line, weighed from outside."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel

READY = "ready"
_UV = str(Path(sys.executable).with_name("uv"))
# Python of an environment of its own: the file of its requirements comes next, then the program.
IN_OWN_ENVIRONMENT = (_UV, "run", "-q", "--no-project", "--isolated", "--with-requirements")
_PATIENCE_S = 600.0
_ROOT = Path(__file__).parents[1]


class ChildFailed(Exception):
    """A process of the benchmark failed; its last words follow."""


class Child:
    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name, self._process = name, process
        self._idle_kib = 0

    async def wait_ready(self) -> None:
        if (await self._line()).strip() != READY:
            raise await self._failed()

    async def ask(self, order: BaseModel) -> str:
        """The answer to an order, as JSON."""
        return await self.answer(order.model_dump_json())

    async def answer(self, line: str) -> str:
        """The line that it answers to this one."""
        await self.tell(line)
        if not (line := await self._line()):
            raise await self._failed()
        return line

    async def tell(self, line: str) -> None:
        if self._process.stdin is None:
            raise await self._failed()
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def weigh_idle(self) -> None:
        """From here on its growth is counted, its peak so far forgotten."""
        self._idle_kib = self._status("VmRSS")
        (self._proc / "clear_refs").write_text("5")

    def growth_mib(self) -> float:
        """The most that it ever weighed since, over what it weighed then."""
        return (self._status("VmHWM") - self._idle_kib) / 1024

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
        await self._process.wait()

    @property
    def _proc(self) -> Path:
        return Path("/proc") / str(self._process.pid)

    def _status(self, field: str) -> int:
        lines = (self._proc / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))

    async def _line(self) -> str:
        if self._process.stdout is None:
            return ""
        async with asyncio.timeout(_PATIENCE_S):
            return (await self._process.stdout.readline()).decode()

    async def _failed(self) -> ChildFailed:
        await self.end()
        return ChildFailed(f"{ChildFailed.__doc__} ({self.name})")


@asynccontextmanager
async def child(
    name: str, *arguments: str, environment: dict[str, str] | None = None, python: tuple[str, ...] = (sys.executable,)
) -> AsyncIterator[Child]:
    """A Python process; what it complains of goes to standard error."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *python, *arguments, cwd=_ROOT, env=environment, stdin=pipe, stdout=pipe, limit=16 * 2**20
    )
    made = Child(name, process)
    try:
        yield made
    finally:
        await made.end()

"""A Redis server of our own, on loopback, in a folder that goes with it."""

import asyncio
import os
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

import redis

from mindbus_fleet.node.guarded_process import Guarded

_LOOPBACK = "127.0.0.1"
_STARTED_WITHIN_S = 20
_POLL_S = 0.02


class RedisMissing(Exception):
    """No Redis here; install Debian's `redis-server` package, then run again."""


class RedisDidNotStart(Exception):
    """Redis did not start; its last words follow."""


class PrivateRedis:
    """Started as often as it is killed; with `keeps`, what it was told stays until `remove`."""

    def __init__(self, *options: str, keeps: bool = False) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise RedisMissing(RedisMissing.__doc__)
        self.folder = Path(tempfile.mkdtemp(prefix="mindbus-redis-"))
        self.port = _free_port()
        saving = ("--appendonly", "yes", "--appendfsync", "always") if keeps else ("--appendonly", "no")
        where = ("--bind", _LOOPBACK, "--port", str(self.port), "--dir", str(self.folder))
        self._command = [program, *where, "--save", "", *saving, *options]
        self._log = self.folder / "server.log"
        self._guarded: Guarded | None = None
        self._folder_held = os.open(self.folder, os.O_RDONLY)

    @property
    def url(self) -> str:
        """Its first database."""
        return f"redis://{_LOOPBACK}:{self.port}/0"

    async def start(self) -> None:
        """Return when it answers. Raises RedisDidNotStart."""
        self._guarded = Guarded(self.folder, {"PATH": os.environ.get("PATH", os.defpath)}, self._folder_held)
        self._guarded.launch(self._command, self._log)
        deadline = time.monotonic() + _STARTED_WITHIN_S
        while not await asyncio.to_thread(self._answers):
            if not self._guarded.all_live or time.monotonic() > deadline:
                await self.kill()
                raise RedisDidNotStart(self._log.read_text(errors="replace"))
            await asyncio.sleep(_POLL_S)

    async def kill(self) -> None:
        """End it as a power cut would."""
        if self._guarded is not None:
            await self._guarded.end()
            self._guarded = None

    def freeze(self) -> None:
        """Connections stay open while nobody answers."""
        os.kill(self._pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after freeze()."""
        os.kill(self._pid, signal.SIGCONT)

    async def remove(self) -> None:
        """Kill it, then delete what it kept."""
        await self.kill()
        os.close(self._folder_held)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def _pid(self) -> int:
        assert self._guarded is not None
        return self._guarded.processes[0].pid

    def _answers(self) -> bool:
        try:
            with redis.Redis(port=self.port, socket_connect_timeout=1, socket_timeout=1) as client:
                client.ping()
        except redis.RedisError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((_LOOPBACK, 0))
        return int(taken.getsockname()[1])

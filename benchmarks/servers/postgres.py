"""A PostgreSQL server of our own, on loopback, in a folder that goes with it."""

import asyncio
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy.engine import make_url

from mindbus_fleet.node.guarded_process import Guarded

_LOOPBACK = "127.0.0.1"
_USER = "mindbus"
_STARTED_WITHIN_S = 30
_POLL_S = 0.02
_SETTINGS = {
    "listen_addresses": _LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    # Nothing here outlives the machine; what a killed server had written is kept by the operating system.
    "fsync": "off",
    "full_page_writes": "off",
}


class PostgresMissing(Exception):
    """No PostgreSQL here; install Debian's `postgresql` package, then run again."""


class PostgresDidNotStart(Exception):
    """PostgreSQL did not start; its last words follow."""


class PrivatePostgres:
    """Started as often as it is killed; what was committed stays until `remove`.

    `binaries` are where the caller puts them within `folder`; without it, those of the system are taken.
    """

    def __init__(self, binaries: str | None = None) -> None:
        found = _find_binaries() if binaries is None else Path(binaries)
        self.folder = Path(tempfile.mkdtemp(prefix="mindbus-postgres-"))
        self.binaries = self.folder / found
        self.port = 0
        self._password = secrets.token_hex(12)
        self._log = self.folder / "server.log"
        self._guarded: Guarded | None = None
        self._folder_held = os.open(self.folder, os.O_RDONLY)

    @property
    def url(self) -> str:
        """Its first database, for an administrator."""
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        """The same through another port, as of a proxy."""
        return f"postgresql+psycopg://{_USER}:{self._password}@{_LOOPBACK}:{port}/postgres"

    @property
    def pid(self) -> int:
        """The server's first process."""
        assert self._guarded is not None
        return self._guarded.processes[0].pid

    async def start(self) -> None:
        """Return when it lets the administrator in. Raises PostgresDidNotStart."""
        if not (self.folder / "data").exists():
            self.port = _free_port()
            await asyncio.to_thread(self._initialise)
        deadline = time.monotonic() + _STARTED_WITHIN_S
        # The processes of a killed server hold its memory for a moment longer; it does not start beside them.
        while not await self._has_started():
            if time.monotonic() > deadline:
                raise PostgresDidNotStart(self._log.read_text(errors="replace"))

    async def kill(self) -> None:
        """End it as a power cut would."""
        if self._guarded is not None:
            await self._guarded.end()
            self._guarded = None

    def freeze(self) -> None:
        """Stop all of its processes: connections stay open while nobody answers."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on after freeze()."""
        self._send(signal.SIGCONT)

    async def remove(self) -> None:
        """Kill it, then delete what it kept."""
        await self.kill()
        os.close(self._folder_held)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    def _send(self, number: signal.Signals) -> None:
        # Each process of the server leads a session of its own.
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in (self.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def _has_started(self) -> bool:
        settings = [option for name, value in _SETTINGS.items() for option in ("-c", f"{name}={value}")]
        command = self._as_its_user("postgres", "-D", str(self.folder / "data"), "-p", str(self.port), *settings)
        self._guarded = Guarded(self.folder, _environment(), self._folder_held)
        self._guarded.launch(command, self._log)
        while self._guarded.all_live:
            if await asyncio.to_thread(self._lets_in):
                return True
            await asyncio.sleep(_POLL_S)
        await self.kill()
        return False

    def _lets_in(self) -> bool:
        try:
            psycopg.connect(self.url.replace("+psycopg", ""), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _initialise(self) -> None:
        password = self.folder / "password"
        password.write_text(self._password)
        if (user := _other_user()) is not None:
            for path in (self.folder, password):
                shutil.chown(path, user.pw_uid, user.pw_gid)
        options = ("--no-sync", "--username", _USER, "--auth=password", "--pwfile", str(password))
        command = self._as_its_user("initdb", "-D", str(self.folder / "data"), "-E", "UTF8", "--no-locale", *options)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, env=_environment())
        if done.returncode != 0:
            raise PostgresDidNotStart(done.stdout + done.stderr)

    def _as_its_user(self, program: str, *arguments: str) -> Sequence[str]:
        command = [str(self.binaries / program), *arguments]
        user = _other_user()
        if user is None:
            return command
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *command]


def _find_binaries() -> Path:
    """The newest of Debian's, else what the PATH has. Raises PostgresMissing."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    if found := sorted(versions, key=lambda path: int(path.parents[1].name)):
        return found[-1].parent
    for program in ("postgres", "initdb"):
        if shutil.which(program) is None:
            raise PostgresMissing(PostgresMissing.__doc__)
    return Path(str(shutil.which("postgres"))).parent


def _other_user() -> pwd.struct_passwd | None:
    """Who runs it in root's stead: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name: user for user in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((_LOOPBACK, 0))
        return int(taken.getsockname()[1])


def create_database(server_url: str, template: str | None = None) -> str:
    """The SQLAlchemy URL of a new database on the server, empty or a copy of `template` (a URL)."""
    name = f"mindbus_test_{secrets.token_hex(6)}"
    copied = SQL("") if template is None else SQL(" TEMPLATE {}").format(Identifier(str(make_url(template).database)))
    with psycopg.connect(libpq_url(server_url), autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)) + copied)
    return make_url(server_url).set(database=name).render_as_string(hide_password=False)


def libpq_url(url: str) -> str:
    """A SQLAlchemy URL as PostgreSQL's own programs write it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)

"""The `mindbus` executable, as somebody at a shell has it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest
from typer.testing import CliRunner

from mindbus.cli.main import app
from mindbus_fleet.node.installation import RabbitMQMissing, find_rabbitmq
from tests.brokers import do_without
from tests.canaries import GUARDED, require_none, require_none_in_files


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Shell:
    """Commands on one data folder, its web app open to all here; nothing of the tests' own settings reaches them."""

    data_dir: Path
    python_path: Sequence[Path] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def spawn(self, *arguments: str, within_s: float = 180, typed: bytes = b"") -> Ended:
        """Run a command in a process of its own, as a shell does; what is typed comes by a pipe."""
        done = subprocess.run(
            [sys.executable, "-m", "mindbus.cli.main", *arguments],
            env=self.environment(),
            capture_output=True,
            input=typed,
            timeout=within_s,
            check=False,
        )
        return self._without_secrets(arguments, Ended(done.returncode, done.stdout.decode(), done.stderr.decode()))

    def start(self, *arguments: str, to: "int | IO[bytes]" = subprocess.PIPE) -> "subprocess.Popen[bytes]":
        """Start a command that goes on, to type to it; all that it says goes to a file or to pipes."""
        return subprocess.Popen(
            [sys.executable, "-m", "mindbus.cli.main", *arguments],
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=to,
            stderr=to,
            # A shell in the background ignores Ctrl-C, and whatever it starts would, too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *arguments: str) -> Ended:
        """Run a command in this process: no interpreter has to start, which takes longer than most commands."""
        done = CliRunner().invoke(app, list(arguments), env=self._environment())
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return self._without_secrets(arguments, Ended(done.exit_code, done.stdout, done.stderr))

    def _without_secrets(self, arguments: Sequence[str], ended: Ended) -> Ended:
        """How a command ended; neither it nor, once a fleet is down, the fleet's logs show a secret."""
        require_none(ended.stdout + ended.stderr, arguments)
        if arguments[:1] == ("down",):
            require_none_in_files(self.data_dir / "logs")
        return ended

    def ok(self, *arguments: str, spawned: bool = False) -> str:
        """What a command prints that succeeds."""
        done = self.spawn(*arguments) if spawned else self.run(*arguments)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *arguments: str, spawned: bool = False) -> Any:
        """What a command that succeeds prints as JSON, which must be all that it prints."""
        return json.loads(self.ok(*arguments, "--json", spawned=spawned))

    def processes(self) -> dict[int, str]:
        """All that runs on the data folder: everything started there has it in its environment or arguments."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                arguments, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(self.data_dir).encode() in arguments + environment:
                found[int(entry.name)] = arguments.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def environment(self) -> dict[str, str]:
        """The environment of a process on the data folder."""
        return {name: value for name, value in self._environment().items() if value is not None}

    def _environment(self) -> dict[str, str | None]:
        inherited = {name: None if name.startswith("MINDBUS_") else value for name, value in os.environ.items()}
        own = {
            "MINDBUS_DATA_DIR": str(self.data_dir),
            "MINDBUS_GATEWAY_ACCESS": "open",
            "PYTHONPATH": os.pathsep.join(map(str, self.python_path)),
        }
        return inherited | own | GUARDED | dict(self.settings)


def require_rabbitmq() -> None:
    """A laptop may lack it, CI may not."""
    try:
        find_rabbitmq()
    except RabbitMQMissing as missing:
        do_without(missing)


if sys.platform != "linux":
    pytest.skip("looks at processes through /proc", allow_module_level=True)

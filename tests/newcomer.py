"""Somebody who follows a page of the documentation in a shell: saves its files, types its commands, line by line."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.settings import FleetSettings
from mindbus.health import HealthFolder, WorkerUnhealthy
from mindbus.testing.wait import eventually

ROOT = Path(__file__).parents[1]
_FILE = r"<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<text>.*?)```"
_COMMANDS = r"^[ ]*```sh\n(?P<lines>.*?)^[ ]*```"
_PARTS = re.compile(f"{_FILE}|{_COMMANDS}", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"\s+#(?: .*)?$")
_PLACEHOLDER = re.compile(r"\b([a-z]+)_(?:0192)?…")
_ID = re.compile(r"\b((?:art|run|kem|ep|task|fact|msg|frag|sim)_[0-9a-zA-Z-]{6,})")


@dataclass(frozen=True)
class PageFile:
    """A file that the reader is told to save."""

    name: str
    text: str


@dataclass(frozen=True)
class PageCommand:
    """A line that the reader is told to type."""

    line: str


def parts_of(page: Path) -> list[PageFile | PageCommand]:
    """Files and commands in the order of the page."""
    parts: list[PageFile | PageCommand] = []
    for found in _PARTS.finditer(page.read_text(encoding="utf-8")):
        if found["name"]:
            parts.append(PageFile(found["name"], found["text"]))
        else:
            joined = re.sub(r"\\\n\s*", "", found["lines"])
            lines = (_COMMENT.sub("", line.strip()) for line in joined.splitlines())
            parts += [PageCommand(line) for line in lines if line and not line.startswith("#")]
    return parts


def files_of(page: Path) -> dict[str, str]:
    return {part.name: part.text for part in parts_of(page) if isinstance(part, PageFile)}


def python_with(folder: Path, extra: str, *packages: str) -> Path:
    """An interpreter of its own that has the library's wheel with an extra, without the fleet, and these packages."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", folder, ROOT], check=True)
    subprocess.run([*uv, "venv", "--quiet", folder / "venv"], check=True)
    (wheel,) = folder.glob("mindbus-*.whl")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, f"{wheel}[{extra}]", *packages], check=True)
    return python


@dataclass
class Newcomer:
    """Somebody in a shell; `seen` are the ids that commands have shown, the last one of each kind."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    _running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MINDBUS_")}
        self.environment = inherited | {
            "MINDBUS_DATA_DIR": str(self.folder / "data"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "200",
            **self.settings,
        }

    def save(self, *files: PageFile) -> None:
        for file in files:
            path = self.folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")

    def run(self, *command: str, expected: int = 0, within_s: float = 120) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=within_s,
            check=False,
        )
        assert done.returncode == expected, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def type_line(self, line: str) -> str:
        """Run a line as a shell does, with what it exports kept; placeholders such as `art_…` are ids seen before."""
        filled = _PLACEHOLDER.sub(lambda found: self.seen[found[1]], line)
        if filled.startswith("cd "):
            self.folder = (self.folder / filled.removeprefix("cd ").strip()).resolve()
            return ""
        if filled.startswith("export "):
            listed = self.run("bash", "-c", f"{filled}; env -0")
            self.environment = dict(pair.split("=", 1) for pair in listed.split("\0") if "=" in pair)
            return ""
        said = self.run("bash", "-c", filled)
        self.seen |= {found.partition("_")[0]: found for found in _ID.findall(said)}
        return said

    def start(self, line: str) -> None:
        """Run a line that goes on, until `leave`."""
        self._running.append(
            subprocess.Popen(
                ["bash", "-c", f"exec {line}"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL
            )
        )

    def leave(self) -> None:
        """End what goes on, and the fleet."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait(60)
        self.run("mindbus", "down")

    @contextmanager
    def running(self, *command: str) -> Iterator[None]:
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(60) == 0

    def until_ready(self, worker: str, other_than: int | None = None) -> int:
        """The process that runs the worker, once it is ready and another than before."""
        health = HealthFolder(FleetSettings(data_dir=Path(self.environment["MINDBUS_DATA_DIR"])))

        def ready_process() -> int | None:
            with suppress(WorkerUnhealthy):
                found = health.require(worker)
                return found.pid if found.ready and found.pid != other_than else None
            return None

        eventually(ready_process, 60, f"{worker} is ready")
        return health.require(worker).pid

    def json(self, *command: str) -> Any:
        return json.loads(self.run(*command, "--json"))

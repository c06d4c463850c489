"""What README tells a newcomer to copy works as it stands."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from config.settings import FleetSettings
from mindbus.health import HealthFolder, WorkerUnhealthy
from mindbus.testing.wait import eventually

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", README, re.DOTALL))


class Newcomer:
    """Somebody in a shell, with the files from README."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "MINDBUS_DATA_DIR": str(folder / "data"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        self._environment.pop("MINDBUS_AMQP_URL", None)

    def run(self, *command: str, expected: int = 0, within_s: float = 120) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=within_s,
            check=False,
        )
        assert done.returncode == expected, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def running(self, *command: str) -> Iterator[None]:
        process = subprocess.Popen(command, cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(60) == 0

    def until_ready(self, worker: str, other_than: int | None = None) -> int:
        """The process that runs the worker, once it is ready and another than before."""
        health = HealthFolder(FleetSettings(data_dir=self.folder / "data"))

        def ready_process() -> int | None:
            with suppress(WorkerUnhealthy):
                found = health.require(worker)
                return found.pid if found.ready and found.pid != other_than else None
            return None

        eventually(ready_process, 60, f"{worker} is ready")
        return health.require(worker).pid

    def json(self, *command: str) -> Any:
        return json.loads(self.run(*command, "--json"))


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory, broker: object) -> Iterator[Newcomer]:
    folder = tmp_path_factory.mktemp("newcomer")
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    somebody = Newcomer(folder)
    somebody.run("mindbus", "up", "-d")
    yield somebody
    somebody.run("mindbus", "down")


def test_readme_is_short_and_begins_with_the_two_commands() -> None:
    assert len(README.splitlines()) <= 200
    assert re.search(r"```sh\nmake demo .*\nmake test .*\n```", README.split("##")[0])


def test_the_program_talks_to_the_bus(newcomer: Newcomer) -> None:
    brief = ROOT / "config" / "briefs" / "en.md"
    run = newcomer.json("mindbus", "process", "run", "article", "--input", str(brief))
    assert run["status"] == "completed"

    told = newcomer.run(sys.executable, "hello_bus.py")

    assert f"{run['run_id']} article completed" in told
    assert "final" in told


def test_a_worker_of_ones_own_counts_answers_and_is_restarted_when_its_file_changes(newcomer: Newcomer) -> None:
    file = newcomer.folder / "counter.py"
    with newcomer.running("mindbus", "dev", "counter.py"):
        first = newcomer.until_ready("counter")
        before = newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]
        (newcomer.folder / "note.txt").write_text("Заметка")
        put = ("mindbus", "artifacts", "put", "note.txt", "--type", "note", "--trace", "notes", "--as", "agent.a")
        newcomer.json(*put)

        after = newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]

        assert after["artifacts"] == before["artifacts"] + 1
        assert after["size_bytes"] == before["size_bytes"] + len("Заметка".encode())

        file.write_text(
            file.read_text().replace("self.artifacts, self.size_bytes = 0, 0", "self.artifacts, self.size_bytes = 7, 0")
        )
        newcomer.until_ready("counter", other_than=first)
        assert newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]["artifacts"] == 7


def test_a_worker_of_ones_own_runs_by_module_and_class(newcomer: Newcomer) -> None:
    with newcomer.running("mindbus", "worker", "counter:CounterWorker"):
        newcomer.until_ready("counter")
        assert "artifacts" in newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]

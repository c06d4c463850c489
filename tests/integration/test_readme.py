"""What README tells a newcomer to copy works as it stands."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", README, re.DOTALL))


class Newcomer:
    """Somebody in a shell, with the files from README and one package of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "MINDBUS_DATA_DIR": str(folder / "data"),
            "PYTHONPATH": str(folder / "installed"),
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
    installing = (sys.executable, "-m", "uv", "pip", "install", "-q", "--target", "installed", "--no-deps", "./counter")
    somebody.run(*installing)
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


def test_a_worker_of_ones_own_joins_the_fleet_and_answers(newcomer: Newcomer) -> None:
    newcomer.run("mindbus", "health", "counter")
    before = newcomer.json("mindbus", "send", "counter.get_tally", "--wait")["result"]
    (newcomer.folder / "note.txt").write_text("Заметка")
    put = ("mindbus", "artifacts", "put", "note.txt", "--type", "note", "--trace", "notes", "--as", "agent.a")
    newcomer.json(*put)

    after = newcomer.json("mindbus", "send", "counter.get_tally", "--wait")["result"]

    assert after["artifacts"] == before["artifacts"] + 1
    assert after["size_bytes"] == before["size_bytes"] + len("Заметка".encode())

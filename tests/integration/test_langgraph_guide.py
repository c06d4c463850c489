"""The guide of LangGraph graphs, followed in a shell; and a graph whose worker is killed in the middle of a task."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mindbus.health import HealthFolder
from mindbus.settings import Settings
from mindbus.testing.wait import eventually
from tests.command_line import Shell
from tests.newcomer import ROOT, files_of
from tests.third_party import install

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(240)]

GUIDE = files_of(ROOT / "docs" / "how-to" / "langgraph.md")
# As in the guide, but for a second step that waits until it may.
HELD = GUIDE["release_notes.py"].replace(
    'print("draft", flush=True)',
    'print("draft", flush=True)\n    while not Path("may_go_on").exists():\n        await asyncio.sleep(0.05)',
)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[Shell]:
    """A fleet for the worker of the guide, which stands in a folder of its own."""
    folder = tmp_path_factory.mktemp("graph")
    points = tomllib.loads(GUIDE["pyproject.toml"])["project"]["entry-points"]["mindbus.workers"]
    path = (install(folder, "chronicler", GUIDE["chronicler.py"], **points),)
    fleet = Shell(folder / "data", path, fleet_settings)
    try:
        fleet.ok("up", "-d", "--workers", "storage,glm,orchestrator,chronicler", spawned=True)
        yield fleet
    finally:
        fleet.ok("down")


@contextmanager
def at_work(shell: Shell, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`mindbus worker release_notes.py`, ready; what it prints goes to a file."""
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "mindbus.cli.main", "worker", "release_notes.py"]
        worker = subprocess.Popen(command, cwd=folder, env=shell.environment(), stdout=log, stderr=log)
    health = HealthFolder(Settings(data_dir=shell.data_dir))
    try:
        eventually(lambda: any(each.pid == worker.pid and each.ready for each in health.all_here()), 60, "it is ready")
        yield worker
    finally:
        worker.terminate()
        worker.wait(60)


def order(shell: Shell, delegation: str) -> list[str]:
    """The command of the guide."""
    given = [f"delegation_id={delegation}", "chat_id=anna", "task=version 2"]
    return ["send", "subagent.execute_task", "--to", "subagent-notes", *given, "--wait", "--json"]


def printed(folder: Path) -> list[str]:
    return [line for line in (folder / "log").read_text().splitlines() if line in ("gather", "draft")]


def test_a_graph_does_a_task_and_the_same_task_once(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "release_notes.py").write_text(GUIDE["release_notes.py"], encoding="utf-8")
    with at_work(shell, tmp_path):
        first = json.loads(shell.ok(*order(shell, "dlg_1"), spawned=True))
    with at_work(shell, tmp_path):
        again = json.loads(shell.ok(*order(shell, "dlg_1"), spawned=True))

    assert "Release notes. Changes of version 2: a faster search." in json.dumps(first)
    assert "Release notes. Changes of version 2: a faster search." in json.dumps(again)
    assert printed(tmp_path) == ["gather", "draft"], "another process has answered from the checkpoint"


def test_a_killed_worker_goes_on_after_the_last_step(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "release_notes.py").write_text(
        HELD.replace("from contextlib", "import asyncio\nfrom pathlib import Path\nfrom contextlib", 1),
        encoding="utf-8",
    )
    with at_work(shell, tmp_path) as worker:
        asking = shell.start(*order(shell, "dlg_2"))
        eventually(lambda: printed(tmp_path) == ["gather", "draft"], 60, "it is in the second step")
        os.kill(worker.pid, signal.SIGKILL)
    (tmp_path / "may_go_on").touch()
    with asking, at_work(shell, tmp_path):
        said, complaint = asking.communicate(timeout=90)

    assert asking.returncode == 0, complaint.decode()
    assert "Release notes. Changes of version 2: a faster search." in said.decode()
    assert printed(tmp_path) == ["gather", "draft", "draft"], "the first step is done once"


def test_a_graph_is_a_role_of_a_card(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "years.yaml").write_text(GUIDE["years.yaml"], encoding="utf-8")
    (tmp_path / "history.md").write_text("# Trams\n\n1931: the first line.\nMuch later\n1968: the last.\n")
    (tmp_path / "wrong.yaml").write_text(GUIDE["years.yaml"].replace("produces: chronicle", "produces: draft"))

    roles = {each["role"]: each for each in shell.json("roles", "ls", spawned=True)}
    wrong = shell.spawn("card", "check", str(tmp_path / "wrong.yaml"))
    given = ("--input", str(tmp_path / "history.md"))
    run = shell.json("process", "run", str(tmp_path / "years.yaml"), *given, spawned=True)

    assert roles["chronicler"] == {"role": "chronicler", "produces": ["chronicle"], "from": "worker"}
    assert "wrong.yaml:6: steps[0].produces: chronicler makes chronicle, not draft" in wrong.stderr
    assert run["status"] == "completed"
    made = shell.json("artifacts", "show", run["result"]["artifact_id"])
    assert (made["artifact_type"], made["owner"]) == ("chronicle", "agent.chronicler")
    assert shell.ok("artifacts", "get", made["id"], "-o", "-") == "- 1931: the first line.\n- 1968: the last.\n"


def test_what_a_graph_remembers_is_found_by_meaning(shell: Shell, tmp_path: Path) -> None:
    told = answer_of("remember.py", "What may I cook for Boris?", shell, tmp_path)

    assert told == "('people', 'boris') food Boris never eats meat.\n"


def test_what_a_tool_has_added_is_a_document_of_the_retriever(shell: Shell, tmp_path: Path) -> None:
    told = answer_of("team_memory.py", "When must the report be ready?", shell, tmp_path)

    assert told == "The report is due on Friday. user.anna\n"


def answer_of(program: str, question: str, shell: Shell, folder: Path) -> str:
    """Output of a program of the guide for a question."""
    (folder / program).write_text(GUIDE[program], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program, question],
        cwd=folder,
        env=shell.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout

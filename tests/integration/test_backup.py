"""Backups of a fleet at work, restored elsewhere: nothing confirmed is missing, runs under way go on."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.servers.postgres import PrivatePostgres, libpq_url
from benchmarks.servers.redis import PrivateRedis
from config.recorded_runs import RecordedRun
from config.settings import FleetSettings
from mindbus.testing.wait import eventually
from mindbus_fleet.backup.errors import BackupFailed
from mindbus_fleet.backup.repository import Repository
from tests.brokers import do_without
from tests.command_line import Shell, require_rabbitmq
from tests.seaweed import ObjectServer

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(600)]

WORKERS = "storage,history,swm,glm,lsm,orchestrator,tracker,dialogue,task_manager,critic,editor"
CARD = """
name: two-steps
result: edit
steps:
  - id: critique
    role: critic
    produces: critique
    instructions: Say what is weak in the text.
  - id: edit
    role: editor
    inputs: [brief, critique]
    produces: edited
    instructions: Edit the text.
"""


@pytest.fixture(autouse=True)
def tools() -> None:
    require_rabbitmq()
    if shutil.which("restic") is None:
        do_without(FileNotFoundError("restic is not installed"), "restic", "")


@pytest.fixture
def model_url(tmp_path: Path) -> Iterator[str]:
    """A model that takes a second and a half for every call."""
    command = [sys.executable, "-m", "tests.llm_server", "--count-file", str(tmp_path / "calls"), "--delay", "1.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.terminate()


@dataclass
class Writer:
    """Puts artifacts and units into a fleet until it is told to stop; what is confirmed is written down."""

    shell: Shell
    folder: Path
    confirmed: dict[str, str] = field(default_factory=dict)
    units: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def write(self) -> None:
        number = 0
        while not self.stopped.is_set():
            note = self.folder / f"{number}.txt"
            # Large ones have a file of their own, small ones share a pack.
            note.write_text(f"note {number} " * (20_000 if number % 4 == 0 else 3), encoding="utf-8")
            put = self.shell.json("artifacts", "put", str(note), "--type", "note", "--trace", "notes", spawned=True)
            self.confirmed[put["artifact_id"]] = put["sha256"]
            added = self.shell.json("memory", "add", "--text", f"Tally {number} is right", spawned=True)
            self.units.append(added["kem_id"])
            number += 1


@contextmanager
def writing(shell: Shell, folder: Path) -> Iterator[Writer]:
    folder.mkdir()
    writer = Writer(shell, folder)
    thread = threading.Thread(target=writer.write)
    thread.start()
    try:
        yield writer
    finally:
        writer.stopped.set()
        thread.join(60)


def known_of(shell: Shell) -> dict[str, Any]:
    """What a fleet answers of its users, dialogues, episodes and histories."""
    return {
        "users": [user["user_id"] for user in shell.json("users", "ls")["items"]],
        "tasks": [task["text"] for task in shell.json("tasks", "ls", "--user", "anna")["items"]],
        "messages": shell.json("dialogues", "history", "anna"),
        "episodes": [each["id"] for each in shell.json("episodes", "ls", "--chat", "anna")],
        "histories": shell.json("history", "ls", "--chat", "anna"),
    }


def begin_run(shell: Shell, tmp_path: Path) -> dict[str, Any]:
    """A run whose first step is done and whose second is at work."""
    (tmp_path / "card.yaml").write_text(CARD, encoding="utf-8")
    (tmp_path / "brief.md").write_text("# Rain\n\nThe rain falls on the roof of the old mill by the river.\n", "utf-8")
    brief = str(tmp_path / "brief.md")
    run_id = shell.json("process", "run", str(tmp_path / "card.yaml"), "--input", brief, "--no-wait")["run_id"]
    eventually(lambda: statuses(shell, run_id) == ["completed", "running"], 90, "the second step is at work")
    return dict(shell.json("process", "status", run_id))


def statuses(shell: Shell, run_id: str) -> list[str]:
    return [step["status"] for step in shell.json("process", "status", run_id)["steps"]]


@dataclass
class Taken:
    """What a fleet had confirmed when its backup began: digests of artifacts, units, answers, a run at work."""

    snapshot: str
    artifacts: dict[str, str]
    units: list[str]
    known: dict[str, Any]
    run: dict[str, Any]


def back_up(shell: Shell, tmp_path: Path, *options: str) -> Taken:
    """Have a fleet work and back it up in the middle of it, then once more."""
    try:
        shell.ok("up", "-d", "--workers", WORKERS, spawned=True)
        shell.ok("users", "add", "anna", "--name", "Anna")
        shell.ok("chat", "--user", "anna", "-m", "We decided to paint the barn red.")
        shell.ok("dialogues", "end", "anna")
        shell.ok("tasks", "add", "Call the painter", "--user", "anna")
        with writing(shell, tmp_path / "notes") as writer:
            eventually(lambda: len(writer.units) >= 2, 60, "something is written")
            run = begin_run(shell, tmp_path)
            taken = Taken("", dict(writer.confirmed), list(writer.units), known_of(shell), run)
            first = shell.json("backup", *options)
        second = shell.json("backup", *options)
        # What is forgotten now must not live on in copies.
        assert not [path for path in (shell.data_dir / "backup").iterdir() if path.name != "objects"]
    finally:
        shell.ok("down")
    assert second["added_bytes"] < first["added_bytes"]
    listed = shell.json("backups", *options)
    assert [each["snapshot"] for each in listed] == [second["snapshot"], first["snapshot"]]
    taken.snapshot = first["snapshot"]
    return taken


def restore(shell: Shell, taken: Taken, *options: str) -> None:
    """Have a fleet elsewhere go on from the backup that was taken in the middle of the work."""
    shell.ok("restore", *options, "--snapshot", taken.snapshot)
    try:
        shell.ok("up", "-d", "--workers", WORKERS, spawned=True)
        require_all(shell, taken)
        refused = shell.run("restore", *options)
        assert (refused.returncode, "a fleet runs on" in refused.stderr) == (1, True)
    finally:
        shell.ok("down")
    assert "has data already" in shell.run("restore", *options).stderr


def require_all(shell: Shell, taken: Taken) -> None:
    assert known_of(shell) == taken.known
    for artifact_id, sha256 in taken.artifacts.items():
        assert shell.json("artifacts", "show", artifact_id)["checksum"] == f"sha256:{sha256}"
    audit = shell.json("storage", "audit")
    assert (audit["missing"], audit["damaged"]) == ([], [])
    assert [shell.json("memory", "get", unit)["id"] for unit in taken.units] == taken.units

    run_id = taken.run["run_id"]
    eventually(lambda: statuses(shell, run_id) == ["completed", "completed"], 90, "the run has gone on")
    run = shell.json("process", "status", run_id)
    assert run["status"] == "completed"
    # What was made is not made again, and no try is lost.
    assert run["steps"][0]["artifact"] == taken.run["steps"][0]["artifact"]
    assert [step["attempt"] for step in run["steps"]] == [1, 1]
    assert not (shell.data_dir / "restored").exists()
    calls = shell.json("process", "calls", run_id)
    assert {call["step_id"] for call in calls} == {"critique", "edit"}
    assert all(call["model_name"] == "scripted-1" and call["answer"] for call in calls if not call["failure"])
    require_export(shell, run_id, len(calls))


def require_export(shell: Shell, run_id: str, calls: int) -> None:
    """The run as a folder: its state, its artifacts, its calls."""
    folder = shell.data_dir.parent / f"exported-{shell.data_dir.name}"
    told = shell.json("process", "export", run_id, str(folder))
    exported = RecordedRun.read(folder)
    assert (told["calls"], told["artifacts"]) == (len(exported.calls), len(exported.artifacts)) == (calls, 3)
    assert exported.run.run_id == run_id
    assert {step.artifact for step in exported.run.steps} < {manifest.ref for manifest in exported.artifacts}
    assert "name a new folder" in shell.run("process", "export", run_id, str(folder)).stderr


def back_up_and_restore(old: Shell, new: Shell, tmp_path: Path, place: str) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse", encoding="utf-8")
    options = (place, "--password-file", str(password))
    restore(new, back_up(old, tmp_path, *options), *options)


def test_a_fleet_at_work_is_backed_up_and_goes_on_elsewhere(tmp_path: Path, model_url: str) -> None:
    settings = {"MINDBUS_LLM_BASE_URL": model_url, "MINDBUS_LLM_MODEL": "scripted-1"}
    back_up_and_restore(
        Shell(tmp_path / "old", settings=settings),
        Shell(tmp_path / "new", settings=settings),
        tmp_path,
        str(tmp_path / "backups"),
    )


@pytest.mark.proof
def test_what_servers_keep_is_in_the_backup_too(
    tmp_path: Path, model_url: str, own_postgres: PrivatePostgres, own_redis: PrivateRedis, object_server: ObjectServer
) -> None:
    with psycopg.connect(libpq_url(own_postgres.url), autocommit=True) as connection:
        connection.execute("CREATE DATABASE elsewhere")
    address, _, _name = own_postgres.url.rpartition("/")
    model = {"MINDBUS_LLM_BASE_URL": model_url, "MINDBUS_LLM_MODEL": "scripted-1"}
    old, new = (
        {"MINDBUS_DATABASE_URL": database, "MINDBUS_REDIS_URL": redis} | object_server.place().environment() | model
        for database, redis in (
            (own_postgres.url, f"{own_redis.url.rstrip('/0')}/0"),
            (f"{address}/elsewhere", f"{own_redis.url.rstrip('/0')}/1"),
        )
    )
    back_up_and_restore(
        Shell(tmp_path / "old", settings=old),
        Shell(tmp_path / "new", settings=new),
        tmp_path,
        object_server.place().url,
    )


def test_a_wrong_password_and_a_missing_backup_are_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    shell = Shell(tmp_path / "data")
    place, password, other = str(tmp_path / "backups"), tmp_path / "password", tmp_path / "other"
    password.write_text("one", encoding="utf-8")
    other.write_text("two", encoding="utf-8")

    assert "--password-file FILE" in shell.run("backup", place).stderr
    assert f"there are no backups in {place}" in shell.run("backups", place, "--password-file", str(password)).stderr
    shell.ok("backup", place, "--password-file", str(password))
    assert "wrong password" in shell.run("backups", place, "--password-file", str(other)).stderr
    # Nobody reads this one, root neither.
    unreadable = Path("/proc/self/mem")
    with pytest.raises(BackupFailed, match=f"is incomplete: restic could not read {unreadable}; see to these files"):
        Repository(place, FleetSettings(data_dir=tmp_path), password).add([tmp_path / "data", unreadable])
    missing = shell.run("restore", place, "--snapshot", "beef", "--password-file", str(password))
    assert (missing.returncode, "has no backup beef" in missing.stderr) == (1, True)

"""`mindbus up -d` and every command on it, from a shell as a newcomer has it."""

import hashlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from mindbus.testing.wait import eventually
from tests.command_line import Shell, require_rabbitmq
from tests.damaged_files import damage
from tests.installed import FLEET
from tests.third_party import ECHO, install

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(300)]

BRIEF = """# Каток, который греет бассейн

Линдвик — город на 23 000 жителей. С октября 2023 года труба под улицей соединяет каток с бассейном.
Работа стоила 1,46 миллиона евро; за первый год бассейн купил на 71 процент меньше газа.

> «Мы тридцать лет грели небо», — говорит начальница катка Анна Берг.

Что открыто: неизвестно, переживёт ли насос вторую зиму.
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A fleet of all workers, with one of another package and a broken one; the way out is a proxy that is away."""
    require_rabbitmq()
    folder = tmp_path_factory.mktemp("up")
    path = [
        install(folder, "echo_package", ECHO, echo="echo_package:EchoWorker"),
        install(folder, "broken_package", "import no_such_module", broken="broken_package:Worker"),
    ]
    proxies = dict.fromkeys(("http_proxy", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    fleet = Shell(folder / "data", path, proxies | {"no_proxy": "", "NO_PROXY": ""})
    with pytest.MonkeyPatch.context() as here:
        for site in path:
            here.syspath_prepend(site)
        try:
            state = fleet.json("up", "-d", spawned=True)
            assert state["status"] == "ready"
            yield fleet
        finally:
            fleet.ok("down")
    assert fleet.processes() == {}


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Where fleets of one worker come and go."""
    require_rabbitmq()
    fleet = Shell(tmp_path_factory.mktemp("small") / "data")
    try:
        yield fleet
    finally:
        fleet.ok("down")


@pytest.fixture
def small(small_folder: Shell) -> Shell:
    """A fleet of one worker, for a test that ends it; where the last test has left it running, it is that one."""
    if not (small_folder.data_dir / "run" / "up.json").exists():
        small_folder.ok("up", "-d", "--workers", "storage")
    return small_folder


@pytest.fixture(scope="module")
def run(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run of the article card."""
    brief = tmp_path_factory.mktemp("brief") / "brief.md"
    brief.write_text(BRIEF, encoding="utf-8")
    ended: dict[str, Any] = shell.json("process", "run", "article", "--input", str(brief), spawned=True)
    return ended


def state_of(shell: Shell) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((shell.data_dir / "run" / "up.json").read_bytes())
    return state


def test_a_second_up_says_where_the_first_is_and_starts_nothing(shell: Shell) -> None:
    first = state_of(shell)
    for options in (["-d"], []):
        second = shell.run("up", *options)

        assert second.returncode == 0
        assert second.stdout.startswith("MindBus is up already: ")
        assert first["gateway_url"] in second.stdout
        assert "ready" not in second.stderr
        assert shell.json("up", *options)["pid"] == first["pid"]


def test_a_second_up_that_would_clear_the_data_is_refused(shell: Shell) -> None:
    refused = shell.run("up", "--clear", "--yes", "--json")

    assert refused.returncode == 1
    assert json.loads(refused.stdout)["code"] == "conflict"


def test_from_another_folder_one_is_told_where_the_fleet_runs(shell: Shell, tmp_path: Path) -> None:
    elsewhere = Shell(tmp_path / "empty")

    for command in ("status", "queues", "down"):
        assert str(shell.data_dir) in elsewhere.run(command).stdout + elsewhere.run(command).stderr


def test_logs_are_shown_for_all_for_a_worker_and_as_json(shell: Shell) -> None:
    assert "role ready" in shell.ok("logs", "-n", "1000")
    assert "role ready" in shell.ok("logs", "critic", "-n", "1000")
    assert {line["process"] for line in map(json.loads, shell.ok("logs", "storage", "--json").splitlines())} == {
        "workers"
    }
    assert len(shell.ok("logs", "-n", "3").splitlines()) == 3
    assert shell.ok("logs", "-n", "0") == ""
    assert "did you mean storage?" in shell.run("logs", "storge").stderr


def test_logs_are_followed(shell: Shell, tmp_path: Path) -> None:
    said = tmp_path / "logs.txt"
    with said.open("wb") as sink:
        following = shell.start("logs", "storage", "-f", "-n", "0", to=sink)
    with following:
        eventually(lambda: b"Ctrl-C" in said.read_bytes(), 30, "the logs are followed")
        shell.run("artifacts", "show", "art_nosuch")
        eventually(lambda: b"art_nosuch" in said.read_bytes(), 30, "the refusal is logged")
        following.send_signal(signal.SIGINT)

        assert following.wait(30) == 0


def test_a_broken_package_is_reported_and_the_rest_runs(shell: Shell) -> None:
    assert "no_such_module" in state_of(shell)["broken"]["broken"]

    refused = shell.spawn("worker", "broken")

    assert refused.returncode == 1
    assert "ModuleNotFoundError" in refused.stderr


def test_what_up_leaves_is_for_this_user_alone(shell: Shell) -> None:
    assert shell.data_dir.stat().st_mode & 0o777 == 0o700
    for name in ("run/up.json", "run/amqp_url", "run/management_url", "storage.db", "logs/up.log", "broker/node.json"):
        assert (shell.data_dir / name).stat().st_mode & 0o077 == 0, name


def test_status_says_where_the_fleet_is_and_what_is_not_well(shell: Shell, small: Shell) -> None:
    told = shell.run("status", "--json")
    found = json.loads(told.stdout)

    assert told.returncode == 1
    assert [trouble for trouble in found["troubles"] if "broken was left out" in trouble] == found["troubles"]
    assert {worker["name"] for worker in found["workers"]} == {*FLEET, "echo"}
    assert found["gateway_url"].startswith("http://127.0.0.1:")
    well = small.json("status")
    assert (well["is_well"], well["status"], [each["name"] for each in well["workers"]]) == (True, "ready", ["storage"])
    assert well["gateway_url"] is None


def test_passwords_are_shown_when_asked_for_alone(small: Shell) -> None:
    broker = (small.data_dir / "run" / "amqp_url").read_text()
    password = URL(broker).password or ""

    assert small.json("status", "--show-secrets")["amqp_url"] == broker
    restarted = [small.ok("down"), small.ok("up", "-d", "--workers", "storage")]
    for said in (*restarted, small.ok("status"), small.ok("status", "--json")):
        assert password not in said
    for log in (small.data_dir / "logs").iterdir():
        assert password not in log.read_text(encoding="utf-8")


def test_status_of_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    told = Shell(tmp_path / "data").run("status")

    assert (told.returncode, "start it with `mindbus up -d`" in told.stdout) == (1, True)


def test_every_worker_is_well(shell: Shell) -> None:
    for worker in (*FLEET, "echo"):
        assert shell.json("health", worker)["ready"] is True


def test_a_worker_of_another_package_has_a_process_of_its_own(shell: Shell) -> None:
    groups = {process["name"]: process["workers"] for process in state_of(shell)["workers"]}

    memory = [name for name in FLEET if name in ("glm", "kps", "lsm")]
    light = [name for name in FLEET if name not in memory]
    assert groups == {"workers": light, "memory": memory, "echo": ["echo"]}


def test_queues_are_listed_with_depth_and_consumers(shell: Shell) -> None:
    def found() -> dict[str, tuple[int, int]]:
        return {queue["name"]: (queue["depth"], queue["consumers"]) for queue in shell.json("queues")}

    listening = {"tracker", "task_manager", "context_manager", "mood_watcher"}
    # The gateway is asked on HTTP, the tracker never.
    asked = {*FLEET, "echo"} - {"tracker", "gateway"}
    wanted = {f"mb.q.{worker}": (0, 1) for worker in asked}
    wanted |= {f"mb.q.{worker}.events": (0, 1) for worker in listening}
    wanted |= {f"mb.q.{worker}.dead": (0, 0) for worker in asked | listening}

    eventually(lambda: wanted.items() <= found().items(), 20, "the broker has counted, as it does every second")


def test_a_run_ends_with_its_steps_and_its_result(run: dict[str, Any]) -> None:
    assert run["status"] == "completed"
    assert run["run_id"].startswith("run_")
    assert [(step["step_id"], step["role"], step["status"]) for step in run["steps"]] == [
        ("research", "researcher", "completed"),
        ("ideas", "ideator", "completed"),
        ("draft", "pushkin", "completed"),
        ("critique", "critic", "completed"),
        ("edit", "editor", "completed"),
        ("final", "pushkin", "completed"),
    ]
    assert all({"artifact_id", "version", "sha256"} <= step["artifact"].keys() for step in run["steps"])
    assert run["result"]["artifact_id"] == run["steps"][-1]["artifact"]["artifact_id"]


def test_a_run_can_be_looked_up(shell: Shell, run: dict[str, Any]) -> None:
    assert shell.json("process", "status", run["run_id"]) == run
    assert run["run_id"] in [found["run_id"] for found in shell.json("process", "ls", "--status", "completed")]
    assert "final" in shell.ok("process", "status", run["run_id"])


def test_an_artifact_of_the_run_comes_back_byte_for_byte(shell: Shell, run: dict[str, Any], tmp_path: Path) -> None:
    article = run["result"]

    manifest = shell.json("artifacts", "get", article["artifact_id"], "-o", str(tmp_path / "article.md"))

    content = (tmp_path / "article.md").read_bytes()
    assert hashlib.sha256(content).hexdigest() == article["sha256"] == manifest["checksum"].removeprefix("sha256:")
    assert shell.ok("artifacts", "get", article["artifact_id"], spawned=True).encode() == content


def test_the_artifacts_of_a_run_are_listed_as_manifests(shell: Shell, run: dict[str, Any]) -> None:
    manifests = shell.json("artifacts", "ls", "--trace", run["run_id"])

    types = [manifest["artifact_type"] for manifest in manifests]
    assert types == ["brief", "research_report", "idea", "draft", "critique", "edited", "final"]
    assert manifests[-1]["id"] == run["result"]["artifact_id"]


def test_lineage_leads_from_the_article_to_the_brief(shell: Shell, run: dict[str, Any]) -> None:
    article = run["result"]["artifact_id"]

    lineage = shell.json("artifacts", "lineage", article)

    by_id = {node["id"]: node["artifact_type"] for node in lineage["nodes"]}
    assert set(by_id.values()) == {"brief", "research_report", "idea", "draft", "critique", "edited", "final"}
    assert all({edge["source"], edge["target"]} <= by_id.keys() for edge in lineage["edges"])
    assert shell.ok("artifacts", "lineage", article).count("brief") > 1


def test_a_trace_artifact_is_there_for_its_trace_and_for_nobody_else(shell: Shell, tmp_path: Path) -> None:
    notes = tmp_path / "заметки.md"
    notes.write_text("Ёлки", encoding="utf-8")
    put = shell.json(
        "artifacts", "put", str(notes), "--type", "notes", "--trace", "t1", "--visibility", "trace", "--as", "agent.a"
    )
    get = ("send", "storage.get_artifact", f"artifact_id={put['artifact_id']}", "--wait", "--json")

    assert put == {
        "artifact_id": put["artifact_id"],
        "version": 1,
        "sha256": hashlib.sha256("Ёлки".encode()).hexdigest(),
    }
    shown = json.loads(shell.ok(*get, "--as", "agent.b", "--trace", "t1"))
    assert (shown["status"], shown["result"]["owner"]) == ("ok", "agent.a")
    refused = shell.run(*get, "--as", "agent.b", "--trace", "t2")
    assert (refused.returncode, json.loads(refused.stdout)["code"]) == (1, "not_found")
    assert shell.run(*get, "--as", "agent.a.other").returncode == 0


def test_a_range_of_an_artifact_is_fetched_and_not_called_checked(shell: Shell, tmp_path: Path) -> None:
    file, part = tmp_path / "digits.txt", tmp_path / "part"
    file.write_text("0123456789" * 100, encoding="utf-8")
    artifact_id = shell.json("artifacts", "put", str(file), "--type", "notes", "--trace", "t2")["artifact_id"]

    assert shell.ok("artifacts", "get", artifact_id, "--range", "8-12", "--trace", "t2", spawned=True) == "89012"
    said = shell.ok("artifacts", "get", artifact_id, "--range", "-3", "-o", str(part), "--trace", "t2")
    assert (part.read_text(), "3 of 1000 bytes from 997 on, not digest-checked" in said) == ("789", True)
    assert "checked" in shell.ok("artifacts", "get", artifact_id, "--range", "0-", "-o", str(part), "--trace", "t2")
    beyond = shell.run("artifacts", "get", artifact_id, "--range", "1001-", "--trace", "t2")
    assert (beyond.returncode, "1000 bytes" in beyond.stderr) == (1, True)


def test_a_preview_shows_the_beginning_and_obeys_nothing_in_it(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "записка.json"
    file.write_text('{"имя": "Пушкин", "bad": "\u202e\x9b31m"}', encoding="utf-8")
    artifact_id = shell.json("artifacts", "put", str(file), "--type", "notes", "--trace", "t2")["artifact_id"]

    shown = shell.ok("artifacts", "show", artifact_id, "--preview", "--trace", "t2")
    as_json = shell.json("artifacts", "show", artifact_id, "--preview", "--lines", "2", "--trace", "t2")

    assert '  "имя": "Пушкин",\n' in shown
    assert not {"\x9b", "\u202e"} & set(shown)
    assert as_json["manifest"]["id"] == artifact_id
    assert as_json["preview"]["text"] == '{\n  "имя": "Пушкин",'
    assert as_json["preview"]["is_cut"]


def test_a_correction_is_the_next_version(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "draft.txt"
    file.write_text("one", encoding="utf-8")
    first = shell.json("artifacts", "put", str(file), "--type", "draft", "--trace", "t3")
    file.write_text("two", encoding="utf-8")

    second = shell.json(
        "artifacts", "put", str(file), "--type", "draft", "--trace", "t3", "--supersedes", first["artifact_id"]
    )

    assert second["version"] == 2
    assert shell.json("artifacts", "show", second["artifact_id"])["supersedes"] == first["artifact_id"]


def test_a_wrong_manifest_is_a_usage_error_and_nothing_is_written(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "draft.txt"
    file.write_text("one", encoding="utf-8")

    refused = shell.run("artifacts", "put", str(file), "--type", "No Such Type", "--trace", "t9", "--json")

    assert refused.returncode == 2
    assert "artifact_type" in json.loads(refused.stdout)["error"]
    assert shell.json("artifacts", "ls", "--trace", "t9") == []


def test_a_command_that_only_another_package_knows_can_be_sent(shell: Shell) -> None:
    reply = shell.json("send", "echo.say", "text=hi ", "times=2", 'tags=["a"]', "--wait")

    assert (reply["status"], reply["result"]["text"]) == ("ok", "hi hi ")
    assert reply["result"]["pid"] in shell.processes()


def test_a_service_that_nobody_runs_is_named(shell: Shell) -> None:
    unroutable = shell.run("send", "echo.say", "text=x", "--to", "nobody", "--wait", "--json")

    assert unroutable.returncode == 1
    assert "nobody" in json.loads(unroutable.stdout)["error"]


def test_events_are_watched_as_lines_of_json(shell: Shell) -> None:
    line = shell.ok("watch", "fleet.heartbeat", "--count", "1", "--for", "20", "--json")

    assert json.loads(line)["type"] == "mb.evt.fleet.heartbeat.v1"


def test_a_dead_letter_is_shown_replayed_once_the_cause_is_mended_and_dropped(shell: Shell, tmp_path: Path) -> None:
    rail = tmp_path / "rail"
    sent = shell.json("send", "echo.stumble", f"unless={rail}")["message_id"]

    def dead() -> list[str]:
        return [letter["message_id"] for letter in shell.json("dlq", "ls", "--service", "echo")]

    eventually(lambda: dead() == [sent], 20, "it is dead")
    shown = shell.json("dlq", "show", sent)
    assert shown["reason"] == "there is nothing to hold on to"
    assert shown["body"]["data"] == {"unless": str(rail)}

    assert shell.json("dlq", "replay", sent) == {"replayed": [sent]}
    eventually(lambda: dead() == [sent], 20, "it is dead again, since nothing is mended")
    rail.touch()
    shell.ok("dlq", "replay", "--all", "--service", "echo")
    assert dead() == []

    rail.unlink()
    sent = shell.json("send", "echo.stumble", f"unless={rail}")["message_id"]
    eventually(lambda: dead() == [sent], 20, "it is dead")
    assert shell.json("dlq", "drop", sent[:13], "--service", "echo") == {"dropped": [sent]}
    assert dead() == []


def test_the_broker_is_as_the_code_says(shell: Shell) -> None:
    found = shell.run("topology", "diff", "--json")

    assert [x for x in json.loads(found.stdout) if not x["kind"].startswith("unknown")] == []


def test_doctor_finds_everything_well(shell: Shell) -> None:
    def unwell() -> set[str]:
        return {check["check"] for check in shell.json("doctor")["checks"] if check["status"] != "ok"}

    # The broker's own numbers lag: it may still speak of dead letters that were dropped a moment ago.
    eventually(lambda: unwell() == {"Worker broken"}, 20, "nothing but the broken plugin is found")


def test_a_worker_that_is_killed_is_restarted(shell: Shell) -> None:
    before = shell.json("health", "echo")["pid"]

    os.kill(before, signal.SIGKILL)

    def is_well_again() -> bool:
        found = shell.run("health", "echo", "--json")
        return found.returncode == 0 and json.loads(found.stdout)["pid"] != before

    eventually(is_well_again, 60, "another process is well")
    after = shell.json("send", "echo.say", "text=back", "--wait")["result"]["pid"]
    assert after not in (before, None)
    assert "worker died, restarting" in (shell.data_dir / "logs" / "up.log").read_text(encoding="utf-8")


def test_a_broker_that_is_killed_comes_back_and_the_workers_with_it(shell: Shell) -> None:
    broker = next(pid for pid, arguments in shell.processes().items() if "beam" in arguments)

    # Whatever keeps it from being started, it is tried again.
    configuration = shell.data_dir / "broker" / "rabbitmq.conf"
    configuration.unlink()
    configuration.mkdir()
    os.kill(broker, signal.SIGKILL)

    log = shell.data_dir / "logs" / "up.log"
    eventually(lambda: "task=broker" in log.read_text(encoding="utf-8"), 60, "it cannot be started")
    configuration.rmdir()
    eventually(lambda: "broker is back" in log.read_text(encoding="utf-8"), 60, "the broker is back")
    reply = shell.json("send", "echo.say", "text=still here", "--wait")
    assert reply["result"]["text"] == "still here"


def test_a_frozen_worker_and_a_frozen_broker_are_killed_and_come_back(shell: Shell) -> None:
    eventually(lambda: shell.run("health", "echo").returncode == 0, 90, "the worker is well")
    broker = next(pid for pid, arguments in shell.processes().items() if "beam" in arguments)
    worker = shell.json("health", "echo")["pid"]

    for pid in (worker, broker):
        os.kill(pid, signal.SIGSTOP)

    eventually(lambda: not {worker, broker} & shell.processes().keys(), 90, "both are gone")
    eventually(lambda: shell.run("health", "echo").returncode == 0, 90, "the worker is well again")
    reply = shell.json("send", "echo.say", "text=awake", "--wait")
    assert reply["result"]["text"] == "awake"
    assert reply["result"]["pid"] != worker


def test_a_killed_supervisor_takes_everything_with_it_and_up_starts_anew(small: Shell) -> None:
    os.kill(state_of(small)["pid"], signal.SIGKILL)

    eventually(lambda: small.processes() == {}, 60, "nothing is left")
    assert small.run("health", "storage").returncode == 1
    doctor = small.run("doctor", "--json")
    assert doctor.returncode == 1
    (told,) = (each for each in json.loads(doctor.stdout)["checks"] if each["check"] == "Supervisor")
    assert (told["status"], "has died" in told["detail"]) == ("failed", True)
    assert small.json("up", "-d", "--workers", "storage")["status"] == "ready"


def test_up_waits_for_what_a_killed_supervisor_has_left(small: Shell) -> None:
    before = state_of(small)["pid"]
    os.kill(before, signal.SIGKILL)

    after = small.json("up", "-d", "--workers", "storage")

    assert after["status"] == "ready"
    assert after["pid"] != before


def test_down_after_the_death_of_the_supervisor_leaves_nothing_behind(small: Shell) -> None:
    os.kill(state_of(small)["pid"], signal.SIGKILL)

    small.ok("down")

    eventually(lambda: small.processes() == {}, 60, "nothing is left")
    assert [file.name for file in (small.data_dir / "run").rglob("*") if file.is_file()] == ["up.lock"]


def test_down_leaves_nothing_behind_and_a_cleared_world_is_empty(small: Shell, shell: Shell, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("old", encoding="utf-8")
    small.ok("artifacts", "put", str(notes), "--type", "notes", "--trace", "t1", "--visibility", "public")
    assert len(small.processes()) > 3

    small.ok("down")

    assert small.processes() == {}
    assert [file.name for file in (small.data_dir / "run").rglob("*") if file.is_file()] == ["up.lock"]
    # Another data folder is another world.
    assert shell.json("health", "storage")["ready"] is True

    up = small.spawn("up", "-d", "--workers", "storage", "--clear", "--yes")

    assert up.returncode == 0, up.stderr
    assert ["storage", "artifacts", "1"] in [line.split() for line in up.stdout.splitlines()]
    assert ["storage", "ready"] in [line.split() for line in up.stderr.splitlines()]
    assert small.json("artifacts", "ls") == []
    packs = small.data_dir / "artifacts" / "packs"
    eventually(lambda: not any(b"old" in pack.read_bytes() for pack in packs.iterdir()), 20, "the bytes are gone")


def test_a_fleet_that_cannot_start_says_why(tmp_path: Path, fleet_settings: dict[str, str]) -> None:
    shell = Shell(tmp_path / "data", settings=fleet_settings | {"MINDBUS_ARTIFACTS_URL": "gopher://nowhere"})

    failed = shell.run("up", "-d", "--workers", "storage", "--json")

    assert failed.returncode == 1
    assert "no store that is supported" in json.loads(failed.stdout)["error"]
    assert shell.processes() == {}


def test_a_damaged_database_keeps_its_messages_and_says_how_to_go_on(
    tmp_path: Path, fleet_settings: dict[str, str]
) -> None:
    impatient = {"MINDBUS_REQUEST_TIMEOUT_S": "2", "MINDBUS_HEARTBEAT_S": "1"}
    fleet = Shell(tmp_path / "data", settings=fleet_settings | impatient)
    database = fleet.data_dir / "storage.db"
    try:
        fleet.ok("up", "-d", "--workers", "storage")
        fleet.ok("users", "add", "anna", "--name", "Anna Berg")
        fleet.ok("down")
        fleet.ok("up", "-d", "--workers", "storage")
        damage(database)

        for command in (("users", "ls"), ("artifacts", "ls")):
            fleet.run(*command, "--json")

        def is_told() -> bool:
            found = fleet.run("health", "storage")
            return found.returncode == 1 and "storage.db is damaged" in found.stderr

        eventually(is_told, 60, "health says that the database is damaged")
        assert fleet.json("dlq", "ls") == []
        assert "storage.db is damaged" in fleet.run("doctor").stdout
        fleet.ok("down")

        again = fleet.run("up", "-d", "--workers", "storage")

        assert again.returncode == 1
        assert "put a backup in its place" in again.stderr
    finally:
        fleet.run("down")

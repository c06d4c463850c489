"""What needs no broker: usage, exit codes, JSON on standard output alone."""

import io
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import pytest
from typer.testing import CliRunner, Result

from bus_schema.codes import State
from bus_schema.runs import Run, RunStatus
from config.settings import FleetSettings
from mindbus.cli.console import show_json
from mindbus.cli.main import COMMANDS, app, bypass_proxy_for_loopback
from mindbus.health import HealthFolder
from mindbus.redaction import without_secrets
from mindbus_fleet.cli.process_run import Progress
from tests.command_line import Shell

Invoke = Callable[..., Result]


@pytest.fixture
def mindbus(tmp_path: Path) -> Invoke:
    runner = CliRunner(env={"MINDBUS_DATA_DIR": str(tmp_path / "data"), "MINDBUS_AMQP_URL": None, "COLUMNS": "200"})
    return lambda *arguments, **options: runner.invoke(app, list(arguments), **options)


def test_help_lists_every_command_but_the_old_name_of_one(mindbus: Invoke) -> None:
    shown = mindbus("--help")

    assert shown.exit_code == 0
    assert [command for command in COMMANDS if f"│ {command} " not in shown.stdout] == ["user"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(mindbus: Invoke, command: str) -> None:
    assert mindbus(command, "--help").exit_code == 0


@pytest.mark.parametrize("command", ["send", "watch", "up", "worker", "health", "queues", "doctor", "demo"])
def test_help_has_examples_to_copy(mindbus: Invoke, command: str) -> None:
    assert f"mindbus {command}" in mindbus(command, "--help").stdout.split("Example")[1]


def test_an_unknown_command_is_told_its_nearest_name(mindbus: Invoke) -> None:
    outcome = mindbus("queus")

    assert outcome.exit_code == 2
    assert "did you mean queues?" in outcome.stderr
    assert outcome.stdout == ""


def test_an_output_that_cannot_take_every_letter_gets_json_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding="ascii") as output:
        monkeypatch.setattr("sys.stdout", output)
        show_json({"said": "Приём — café"})

        assert json.loads(written.getvalue()) == {"said": "Приём — café"}


def test_words_that_a_terminal_cannot_show_are_no_error(tmp_path: Path) -> None:
    ended = Shell(tmp_path, settings={"PYTHONIOENCODING": "ascii"}).spawn("--lang", "ru", "sim", "ls")

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "team_ru" in ended.stdout


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    ("given", "then"),
    [
        ("", "localhost,127.0.0.1,::1"),
        ("corp.example", "corp.example,localhost,127.0.0.1,::1"),
        ("*", "*"),
    ],
)
def test_this_machine_is_reached_without_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str, then: str
) -> None:
    monkeypatch.setenv(name, "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", given)
    monkeypatch.setenv("no_proxy", "")

    for _ in range(2):
        bypass_proxy_for_loopback()

    assert (os.environ["NO_PROXY"], os.environ["no_proxy"]) == (then, then)
    assert proxy_bypass("127.0.0.1:15672")
    assert proxy_bypass("rabbit.example:15672") == (given == "*")


def test_without_a_proxy_the_environment_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    bypass_proxy_for_loopback()

    assert "no_proxy" not in os.environ


@pytest.mark.parametrize(
    "arguments",
    [
        ("queues",),
        ("dlq", "ls"),
        ("process", "ls"),
        ("artifacts", "ls"),
        ("topology", "diff"),
        ("chat", "--user", "anna", "--message", "hi"),
        ("dialogues", "ls"),
        ("sim", "status"),
        ("user", "forget", "anna", "--yes"),
        ("memory", "search", "what"),
        ("memory", "add", "--text", "that"),
        ("glm", "check"),
        ("send", "storage.get_artifact", "artifact_id=art_1", "--wait"),
    ],
)
def test_without_a_broker_a_command_says_how_to_get_one(mindbus: Invoke, arguments: tuple[str, ...]) -> None:
    outcome = mindbus(*arguments, "--json")

    assert outcome.exit_code == 1
    said = json.loads(outcome.stdout)
    assert said["code"] == "unavailable"
    assert "mindbus up" in said["error"]
    assert "mindbus up" in outcome.stderr


def test_a_broker_that_is_gone_is_noticed_at_once(mindbus: Invoke) -> None:
    outcome = mindbus("process", "ls", "--json", env={"MINDBUS_AMQP_URL": "amqp://guest:guest@127.0.0.1:9/"})

    assert outcome.exit_code == 1
    assert "does not answer at 127.0.0.1:9" in json.loads(outcome.stdout)["error"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("send", "storage.get_artefact", "artifact_id=art_1"), "did you mean storage.get_artifact"),
        (("send", "storage.get_artifact", "id=art_1"), "its fields are artifact_id"),
        (("send", "storage.get_artifact", "artifact_id=x"), "artifact_id: "),
        (("send", "process.execute_step"), "say which with --to"),
        (("send", "process.started", "--wait"), "nobody answers it"),
        (("process", "status", "nonsense"), "run_id: "),
        (("process", "rerun", "nonsense"), "of_run: "),
        (("process", "retry", "art_1"), "run_id: "),
        (("process", "retry", "run_1", "--from", "Draft 1"), "from_step: "),
        (("process", "replace", "nonsense", "draft", __file__), "run_id: "),
        (("process", "calls", "nonsense"), "run_id: "),
        (("process", "export", "nonsense", "/nonexistent/x"), "run_id: "),
        (("process", "run", "article", *("--input", __file__) * 21), "--input is given 21 times"),
        (("process", "run", "article", "--input", "x.md", "--param", "novalue"), "is not K=V"),
        (("artifacts", "get", "art_1"), "say with -o"),
        (("artifacts", "get", "art_1", "-o", "/nonexistent/x"), "there is no folder /nonexistent"),
        (("artifacts", "get", "art_1", "-o", "/tmp"), "is a folder"),
        (("artifacts", "retry"), "say --all"),
        (("artifacts", "retry", "art_1"), "did not fail here"),
        (("logs", "storge"), "did you mean storage?"),
        (("new", "worker", "My-Worker"), "as in my_worker"),
        (("dlq", "replay"), "say which"),
        (("dlq", "replay", ""), "say which"),
        (("dlq", "drop", ""), "say which"),
        (("demo", "--recorded", "--brief", __file__), "leave out --brief"),
        (("users", "add", "dash", "--read-only"), "give --role as well"),
        (("worker", "storge"), "did you mean storage?"),
        (("up", "--workers", "storge"), "did you mean storage?"),
        (("up", "--clear"), "confirm it with --yes"),
        (("up", "--clear", "--yes", "--workers", "tracker"), "none of these workers owns data"),
        (("user", "forget", "anna"), "confirm it with --yes"),
        (("chat", "--user", "anna"), "--json is for one message"),
        (("chat", "--user", "anna", "--message", ""), "is empty"),
        (("chat", "--user", "anna", "--message", " \n"), "is empty"),
        (("chat", "--user", "anna", "--message", "hi", "--file", "x"), "not both"),
        (("chat", "--user", "anna", "hi", "-m", "hi"), "give the message once"),
        (("chat", "--user", "anna", "--file", "/nowhere.txt"), "cannot be read"),
        (("sim", "start", "--profiles", "../team"), "profiles: "),
        (("memory", "add"), "by --text, or by --file"),
        (("memory", "add", "--text", "a", "--meta", "novalue"), "is not K=V"),
        (("memory", "add", "--text", "a", "--meta", "n:=NaN"), "number that is none in JSON"),
        (("memory", "add", "--text", "a", "--meta", "bad key=1"), "metadata"),
        (("memory", "add", "--text", "я" * 50_000), "make it an artifact"),
        (("memory", "add", "--text", "a", "--reader", "nobody"), "readers"),
        (("memory", "search", "a", "--filter", "metadata.a=1 OR"), "At character 16"),
        (("memory", "search", "a", "--filter", "nonsense=1"), "unknown field nonsense"),
        (("memory", "watch", "--filter", "("), "expected a condition"),
        (("sim", "start", "--profiles", "team_ru", "--speed", "0"), "speed: "),
        (("sim", "stop", "nonsense"), "sim_id: "),
        (("events", "--since", "2999-01-01"), "lies in the future"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(mindbus: Invoke, arguments: tuple[str, ...], complaint: str) -> None:
    as_json = () if arguments[0] == "worker" else ("--json",)

    outcome = mindbus(*arguments, *as_json)

    assert (outcome.exit_code, complaint in outcome.stderr) == (2, True), outcome.stderr
    if as_json:
        assert complaint in json.loads(outcome.stdout)["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("send", "storage.get_artifact", "artifact_id=art_1", "--as", "nobody"),
        ("artifacts", "ls", "--trace", "a b"),
        ("artifacts", "get", "nosuch"),
        ("memory", "search", ""),
        ("episodes", "search", " ", "--chat", "anna"),
        ("new", "robot", "marvin"),
        ("artifacts", "put", "/nowhere.md", "--type", "t", "--trace", "t1"),
        ("artifacts", "put", __file__, "--type", "t"),
        ("process", "ls", "--status", "dancing"),
        ("process", "run", "article"),
        ("queues", "--nonsense"),
        ("chat", "--user", "ан на", "--message", "hi"),
        ("chat", "--user", "../etc", "--message", "hi"),
        ("chat", "--message", "hi"),
        ("dialogues", "history", "a b"),
        ("dialogues", "history", "anna", "--limit", "0"),
        ("user", "forget", "a/b", "--yes"),
        ("sim", "check", "/nowhere.yaml"),
    ],
)
def test_what_the_options_do_not_allow_is_a_usage_error_with_nothing_on_standard_output(
    mindbus: Invoke, arguments: tuple[str, ...]
) -> None:
    outcome = mindbus(*arguments)

    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert outcome.stderr


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02"])
def test_an_unusable_brief_is_refused_before_anything_is_written(
    mindbus: Invoke, tmp_path: Path, content: bytes
) -> None:
    brief = tmp_path / "brief.md"
    brief.write_bytes(content)

    outcome = mindbus("process", "run", "article", "--input", str(brief), "--json")

    assert outcome.exit_code == 1
    assert json.loads(outcome.stdout)["code"] == "invalid"
    assert not (tmp_path / "data").exists()


def test_an_unknown_card_is_told_which_there_are(mindbus: Invoke, tmp_path: Path) -> None:
    outcome = mindbus("process", "run", "novel", "--input", str(tmp_path / "brief.md"))

    assert outcome.exit_code == 1
    assert "article, due-diligence, review" in outcome.stderr


def test_a_bad_card_is_told_file_line_and_field(mindbus: Invoke, tmp_path: Path) -> None:
    card = tmp_path / "card.yaml"
    card.write_text(
        "name: mine\nresult: one\nsteps:\n  - id: one\n    role: jester\n    produces: joke\n    instructions: Joke.\n",
        encoding="utf-8",
    )
    (tmp_path / "brief.md").write_text("About jokes.", encoding="utf-8")

    outcome = mindbus("process", "run", str(card), "--input", str(tmp_path / "brief.md"))

    assert outcome.exit_code == 1
    assert "card.yaml:5" in outcome.stderr
    assert "jester" in outcome.stderr


def test_a_worker_that_does_not_run_is_unwell(mindbus: Invoke) -> None:
    outcome = mindbus("health", "storage", "--json")

    assert outcome.exit_code == 1
    assert "does not run on this host" in json.loads(outcome.stdout)["error"]


def test_down_where_nothing_runs_is_no_failure(mindbus: Invoke) -> None:
    outcome = mindbus("down", "--json")

    assert (outcome.exit_code, json.loads(outcome.stdout)) == (0, {"stopped": False})


def test_a_setting_that_cannot_be_read_is_named(mindbus: Invoke) -> None:
    outcome = mindbus("queues", env={"MINDBUS_HEARTBEAT_S": "often"})

    assert outcome.exit_code == 2
    assert "MINDBUS_HEARTBEAT_S" in outcome.stderr


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        (("MINDBUS_LOG_LEVEL", "verbose"), "must be one of DEBUG, INFO"),
        (("MINDBUS_LOG_FORMAT", "xml"), "must be one of console, json"),
        (("MINDBUS_RETRY_RUNGS", "10"), "must be delays such as 1s,10s,1m"),
    ],
)
def test_a_setting_that_is_none_of_those_there_are_is_refused(
    mindbus: Invoke, setting: tuple[str, str], complaint: str
) -> None:
    outcome = mindbus("status", env=dict([setting]))

    assert (outcome.exit_code, f"{setting[0]}: {complaint}" in outcome.stderr) == (2, True), outcome.stderr
    assert FleetSettings(log_level="debug", log_format="JSON").log_level == "DEBUG"


@pytest.mark.parametrize("command", [("queues",), ("status",), ("doctor",), ("up", "-d"), ("memory", "search", "a")])
def test_an_address_that_is_none_of_a_broker_is_refused_at_once(mindbus: Invoke, command: tuple[str, ...]) -> None:
    outcome = mindbus(*command, env={"MINDBUS_AMQP_URL": "http://127.0.0.1:15672"})

    assert outcome.exit_code == 2
    assert "MINDBUS_AMQP_URL: must begin with amqp:// or amqps://" in outcome.stderr


def test_a_dead_broker_is_not_taken_for_a_missing_plugin(mindbus: Invoke) -> None:
    outcome = mindbus("queues", env={"MINDBUS_AMQP_URL": "amqp://guest:guest@127.0.0.1:9/"})

    assert outcome.exit_code == 1
    assert "does not answer at 127.0.0.1:9" in outcome.stderr
    assert "plugin" not in outcome.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("MINDBUS_DATADIR", "MINDBUS_DATA_DIR"), ("MINDBUS_LLM_MODLE", "MINDBUS_LLM_MODEL")],
)
def test_a_mistyped_setting_is_told_its_near_name(mindbus: Invoke, typed: str, meant: str) -> None:
    assert f"{typed} is not a setting; did you mean {meant}?" in mindbus("down", env={typed: "x"}).stderr


@pytest.mark.parametrize(
    "name",
    ["MINDBUS_UI_PORT", "MINDBUS_TEST_REDIS_URL", "MINDBUS_LLM_DIALOGUE_MODEL", "MINDBUS_LLM_CONTEXT_MODEL"],
)
def test_variables_of_compose_files_tests_and_roles_are_no_typing_errors(mindbus: Invoke, name: str) -> None:
    assert "no setting" not in mindbus("down", env={name: "1"}).stderr


def test_where_no_fleet_runs_the_place_looked_at_is_named(mindbus: Invoke, tmp_path: Path) -> None:
    for command in (("status",), ("queues",), ("logs",)):
        outcome = mindbus(*command)

        assert outcome.exit_code == 1
        assert f"looked for in {tmp_path / 'data'}" in outcome.output


def test_the_committed_contracts_are_up_to_date(mindbus: Invoke) -> None:
    assert mindbus("schema", "export", "--check", "--json").exit_code == 0


def test_outdated_contracts_fail_the_check(mindbus: Invoke, tmp_path: Path) -> None:
    outcome = mindbus("schema", "export", "--check", "--output", str(tmp_path))

    assert outcome.exit_code == 1
    assert "mindbus schema export" in outcome.stderr


def test_doctor_passes_on_mere_warnings(mindbus: Invoke) -> None:
    outcome = mindbus("doctor", "--json")

    report = json.loads(outcome.stdout)
    statuses = {check["check"]: check["status"] for check in report["checks"]}
    assert (outcome.exit_code, report["ok"]) == (0, True), report
    assert statuses["Broker"] == statuses["Workers"] == "warning"
    assert "mindbus up -d" in next(check["detail"] for check in report["checks"] if check["check"] == "Workers")
    assert statuses["Python"] == statuses["Data folder"] == statuses["File store"] == "ok"


def test_doctor_tells_of_what_was_set_aside_and_what_a_worker_notes(mindbus: Invoke, tmp_path: Path) -> None:
    HealthFolder(FleetSettings(data_dir=tmp_path / "data")).report("storage", State.READY, "a clock is 290 s ahead")
    with closing(sqlite3.connect(tmp_path / "data" / "storage.db")) as database:
        database.execute("CREATE TABLE quarantine (seq INTEGER)")
        database.execute("INSERT INTO quarantine VALUES (1)")
        database.commit()

    checks = {check["check"]: check for check in json.loads(mindbus("doctor", "--json").stdout)["checks"]}

    worker, database_check = checks["Worker storage"], checks["Database of storage"]
    assert (worker["status"], database_check["status"]) == ("warning", "warning")
    assert worker["detail"].endswith("; a clock is 290 s ahead")
    assert "1 unreadable messages in its table quarantine" in database_check["detail"]


def test_cards_and_roles_are_checked_listed_and_drawn(mindbus: Invoke, tmp_path: Path) -> None:
    card = tmp_path / "card.yaml"
    step = "  - {id: one, role: critic, produces: %s, instructions: x, repeat: {back_to: one, until: one.satisfied}}\n"
    card.write_text("name: mine\nresult: one\nsteps:\n" + step % "idea", encoding="utf-8")
    role = tmp_path / "jester.yaml"
    role.write_text("name: fool\n", encoding="utf-8")

    wrong, unplayable = mindbus("card", "check", str(card)), mindbus("roles", "check", str(role))
    assert (wrong.exit_code, unplayable.exit_code) == (1, 1)
    assert "card.yaml:4: steps[0].produces: critic makes critique, not idea" in " ".join(wrong.stderr.split())
    assert "jester.yaml:1" in unplayable.stderr

    card.write_text("name: mine\nresult: one\nsteps:\n" + step % "critique", encoding="utf-8")
    assert "mine can be run; steps: 1" in mindbus("card", "check", str(card)).stdout
    drawn = json.loads(mindbus("card", "show", str(card), "--json").stdout)["mermaid"]
    assert drawn.startswith("graph LR\n")
    assert 's0 ==>|"until one.satisfied, at most 3"| s0' in drawn
    listed = json.loads(mindbus("card", "ls", "--json").stdout)
    assert [each["name"] for each in listed] == ["article", "due-diligence", "review"]
    roles = {each["role"]: each["produces"] for each in json.loads(mindbus("roles", "ls", "--json").stdout)}
    assert roles["pushkin"] == ["draft", "final"]
    assert "critic can be used: critique" in mindbus("roles", "check", "critic").stdout


def test_each_container_is_given_credentials_of_its_own_and_keeps_them(mindbus: Invoke, tmp_path: Path) -> None:
    volumes = tmp_path / "volumes"
    make = ("credentials", str(volumes), "--owner", str(os.getuid()))

    assert mindbus(*make).exit_code == 0
    made = _keys_in(volumes)
    assert mindbus(*make).exit_code == 0

    assert _keys_in(volumes) == made
    own = {"mindbus_amqp_url", "mindbus_database_url"}
    assert {*made["critic"]} == own
    assert {*made["storage"]} == own | {"mindbus_s3_access_key", "mindbus_s3_secret_key"}
    assert {*made["swm"]} == own | {"mindbus_redis_url"}
    assert {*made["gateway"]} == own | {"mindbus_management_url", "mindbus_metrics_token"}
    assert (volumes / "prometheus" / "metrics_token").read_text() == made["gateway"]["mindbus_metrics_token"]
    assert {*made["cli"]} == {"mindbus_amqp_url"}
    passwords = {urlsplit(url).password for keys in made.values() for name, url in keys.items() if "://" in url}
    assert len(passwords) == sum("://" in url for keys in made.values() for url in keys.values())
    assert all(file.stat().st_mode & 0o077 == 0 for file in volumes.glob("*/keys/*"))
    (volumes / "rabbitmq" / "definitions.json").read_text().index('"critic"')


def test_a_setting_is_read_from_a_file_unless_its_variable_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mindbus_amqp_url").write_text("amqp://critic:pw-in-a-file@rabbitmq/\n")
    (tmp_path / "mindbus_s3_secret_key").write_text("canary-9x7Pq2")
    monkeypatch.setenv("MINDBUS_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("MINDBUS_S3_SECRET_KEY", "of-the-environment-1")
    monkeypatch.delenv("MINDBUS_AMQP_URL", raising=False)

    settings = FleetSettings()

    assert (settings.amqp_url, settings.s3_secret_key) == (
        "amqp://critic:pw-in-a-file@rabbitmq/",
        "of-the-environment-1",
    )
    assert "pw-in-a-file" not in f"{settings!r} {without_secrets('it is pw-in-a-file')}"


def _keys_in(volumes: Path) -> dict[str, dict[str, str]]:
    """Settings that are given to each container."""
    return {
        keys.parent.name: {file.name: file.read_text() for file in keys.iterdir()} for keys in volumes.glob("*/keys")
    }


def test_progress_says_that_a_run_is_paused_and_how_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    paused = Run(
        run_id="run_1",
        card_name="article",
        started_by="user.anna",
        started_at=datetime(2026, 3, 11, 12, tzinfo=UTC),
        status=RunStatus.PAUSED,
        reason="the tokens for today are used up",
        inputs=(),
        steps=(),
    )

    with Progress(is_silent=False) as progress:
        progress(paused, {})
        progress(paused, {})

    said = capsys.readouterr().err
    assert said.split("\n") == ["paused: the tokens for today are used up: mindbus process resume run_1", ""]

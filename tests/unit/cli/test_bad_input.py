"""Bad input on the command line: a clear error each, before there is so much as a data folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from config.settings import FleetSettings
from mindbus.cli.errors import UsageError, read_settings
from mindbus.cli.main import app

Invoke = Callable[..., Result]

CARD = "name: mine\nresult: b\nsteps:\n- {{id: a, role: {role}, produces: draft, instructions: Go., inputs: [{of}]}}\n"
SECOND = "- {id: b, role: critic, produces: critique, instructions: Go., inputs: [a]}\n"
FILES: dict[str, bytes] = {
    "brief.md": "О трамвае.".encode(),
    "empty.md": b" \n",
    "binary.md": bytes(range(256)),
    "jester.yaml": (CARD.format(role="jester", of="brief") + SECOND).encode(),
    "cycle.yaml": (CARD.format(role="critic", of="b") + SECOND).encode(),
    "broken.json": b'{"artifact_id": ',
    "twice.json": b'{"artifact_id": "art_1", "artifact_id": "art_2"}',
    "bulky.json": json.dumps({"artifact_id": "a" * 300 * 1024}).encode(),
    "unknown-field.json": b'{"artifact_id": "art_1", "force": true}',
}


@pytest.fixture
def mindbus(tmp_path: Path) -> Invoke:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    runner = CliRunner(env={"MINDBUS_DATA_DIR": str(tmp_path / "data"), "MINDBUS_AMQP_URL": None, "COLUMNS": "500"})
    return lambda *arguments: runner.invoke(app, [*arguments, "--json"])


@pytest.mark.parametrize(
    ("card", "brief", "complaint"),
    [
        ("jester.yaml", "brief.md", "jester.yaml:4: steps[0].role: there is no role 'jester'"),
        ("cycle.yaml", "brief.md", "cycle.yaml:4: steps[0].inputs: these steps wait for each other: a → b → a"),
        ("article", "empty.md", "empty.md is empty"),
        ("article", "binary.md", "binary.md is not text"),
        ("article", "nowhere.md", "nowhere.md cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused(mindbus: Invoke, tmp_path: Path, card: str, brief: str, complaint: str) -> None:
    given = str(tmp_path / card) if card in FILES else card

    outcome = mindbus("process", "run", given, "--input", str(tmp_path / brief))

    answer = json.loads(outcome.stdout)
    assert (outcome.exit_code, answer["code"]) == (1, "invalid")
    assert complaint in answer["error"]
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("type_", "file", "complaint"),
    [
        ("storage.erase_artifact", "brief.md", "unknown type 'storage.erase_artifact'"),
        ("storage.get_artifact", "unknown-field.json", "force"),
        ("storage.get_artifact", "broken.json", "broken.json"),
        ("storage.get_artifact", "twice.json", "key given twice: artifact_id"),
        (
            "storage.get_artifact",
            "bulky.json",
            "artifact_id: not an artifact id like art_0192…; `mindbus artifacts ls` lists them",
        ),
        ("storage.get_artifact", "nowhere.json", "nowhere.json"),
    ],
)
def test_what_is_no_message_is_not_sent(mindbus: Invoke, tmp_path: Path, type_: str, file: str, complaint: str) -> None:
    outcome = mindbus("send", type_, "--file", str(tmp_path / file), "--wait")

    answer = json.loads(outcome.stdout)
    assert outcome.exit_code == 2
    assert complaint in answer["error"]
    assert len(answer["error"]) < 1000
    assert not (tmp_path / "data").exists()


def test_the_calls_of_a_run_that_is_not_recorded_are_not_promised(mindbus: Invoke, tmp_path: Path) -> None:
    outcome = mindbus("demo", "--full")

    assert outcome.exit_code == 2
    assert "give --recorded as well" in json.loads(outcome.stdout)["error"]
    assert not (tmp_path / "data").exists()


def test_a_setting_in_another_form_is_told_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDBUS_EMBEDDING_MODEL", "/models/mine")

    with pytest.raises(UsageError) as refused:
        read_settings(FleetSettings)

    assert "MINDBUS_EMBEDDING_MODEL: not written as expected. Model that" in str(refused.value)
    assert "a folder relative to the current one" in str(refused.value)
    assert "pattern" not in str(refused.value)

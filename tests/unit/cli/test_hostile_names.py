"""Names that nothing may have, on the command line: a clear error each, nothing written, nothing opened."""

import json
from itertools import cycle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mindbus.cli.main import app
from tests.hostile_addresses import hostile_names

PUT = ("artifacts", "put", "notes.md", "--trace", "run_1")
COMMANDS = (
    ("artifacts", "get", "--json", "--", "{}"),
    (*PUT, "--json", "--type", "draft", "--id={}"),
    ("artifacts", "show", "--json", "--", "{}"),
    (*PUT, "--json", "--type={}"),
    ("artifacts", "lineage", "--json", "--", "{}"),
    ("artifacts", "get", "--json", "--as={}", "art_1"),
    ("send", "storage.get_artifact", "artifact_id={}", "--wait", "--json"),
)
# A NUL is the end of an argument to every shell there is.
CASES = list(zip([name for name in hostile_names() if "\0" not in name], cycle(COMMANDS)))


@pytest.mark.parametrize(("name", "command"), CASES)
def test_a_hostile_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: tuple[str, ...]
) -> None:
    house = tmp_path / "house"
    house.mkdir()
    monkeypatch.chdir(house)
    Path("notes.md").write_text("Заметки.", encoding="utf-8")
    runner = CliRunner(env={"MINDBUS_DATA_DIR": ".data", "MINDBUS_AMQP_URL": f"memory://{tmp_path}", "COLUMNS": "500"})

    outcome = runner.invoke(app, [word.replace("{}", name) for word in command])

    assert isinstance(outcome.exception, SystemExit)
    assert outcome.exit_code in (1, 2)
    assert "Traceback" not in outcome.output
    assert not outcome.stdout or json.loads(outcome.stdout)["code"] in ("invalid", "not_found")
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert written <= {"notes.md", ".lock"}

"""`mindbus agents hear`: what the agents find in messages, one JSON object a line."""

import json
from pathlib import Path

from tests.command_line import Ended, Shell

SAID_AT = "2026-03-11T10:00:00+03:00"


def hear(folder: Path, *arguments: str) -> Ended:
    return Shell(folder / "data").run("agents", "hear", *arguments)


def test_a_message_is_annotated_without_a_fleet(tmp_path: Path) -> None:
    done = hear(tmp_path, "Я завтра отправлю отчёт Ирине.", "--user", "anna", "--at", SAID_AT, "--json")

    heard = json.loads(done.stdout)
    assert heard["tasks"] == [{"text": "Отправить отчёт Ирине", "owner": "me", "due": "2026-03-12"}]
    assert heard["facts"] == heard["changes"] == []
    assert -1 <= heard["mood"] <= 1


def test_a_file_is_read_line_by_line_and_what_it_does_not_know_is_ignored(tmp_path: Path) -> None:
    lines = [
        {"text": "I'll send the invoice to Kate by Friday.", "user": "anna", "at": SAID_AT, "tasks": ["never read"]},
        {"text": "I've sent the invoice.", "user": "anna", "at": SAID_AT, "context": "I'll send the invoice to Kate."},
    ]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    first, second = map(json.loads, hear(tmp_path, "--file", str(file), "--json").stdout.splitlines())

    assert [(task["owner"], task["due"]) for task in first["tasks"]] == [("me", "2026-03-13")]
    assert second["tasks"] == []
    assert [(each["change"], each["due"]) for each in second["changes"]] == [("done", None)]
    assert "invoice" in second["changes"][0]["of"]


def test_lines_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text('{"text": "Hello", "user": "anna"}\n', encoding="utf-8")

    done = hear(tmp_path, "--file", str(file), "--json")

    assert done.returncode == 2
    assert "lines.jsonl:1: at:" in done.stdout


def test_somebody_has_to_say_something(tmp_path: Path) -> None:
    assert hear(tmp_path, "Hello there").returncode == 2
    assert hear(tmp_path, "--user", "anna").returncode == 2

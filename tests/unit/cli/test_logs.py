"""Logs of several processes are shown as one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from config.settings import FleetSettings
from mindbus.cli.main import app
from mindbus_fleet.supervision.run_folder import RunFolder


def as_json(time: str, text: str) -> str:
    return json.dumps({"event": text, "quoted": '"timestamp": "2001', "level": "info", "timestamp": time})


def as_line(time: str, text: str) -> str:
    return f"{time} [info     ] {text}"


@pytest.mark.parametrize("name", ["workers", "storage"])
def test_the_log_of_a_fleet_that_has_ended_is_shown(tmp_path: Path, name: str) -> None:
    logs = RunFolder(FleetSettings(data_dir=tmp_path)).logs
    logs.mkdir(parents=True)
    (logs / "workers.log").write_text(as_line("2026-03-14T12:00:00.000000Z", "why it ended") + "\n")

    shown = CliRunner(env={"MINDBUS_DATA_DIR": str(tmp_path)}).invoke(app, ["logs", name])

    assert (shown.exit_code, "why it ended" in shown.stdout) == (0, True), shown.stderr


@pytest.mark.parametrize("written", [as_json, as_line])
def test_lines_of_all_processes_are_in_the_order_of_their_times(
    tmp_path: Path, written: Callable[[str, str], str]
) -> None:
    logs = RunFolder(FleetSettings(data_dir=tmp_path)).logs
    logs.mkdir(parents=True)
    for process, minutes in (("memory", (1, 3, 5)), ("workers", (0, 2, 4))):
        lines = [written(f"2026-03-14T12:0{minute}:00.000000Z", f"step {minute}") for minute in minutes]
        (logs / f"{process}.log").write_text("\n".join(lines) + "\n")

    shown = CliRunner(env={"MINDBUS_DATA_DIR": str(tmp_path)}).invoke(app, ["logs", "-n", "4", "--json"])

    told = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [each["process"] for each in told] == ["workers", "memory", "workers", "memory"]
    assert all(f"step {minute}" in each["line"] for minute, each in zip((2, 3, 4, 5), told, strict=True))

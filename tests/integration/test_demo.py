"""The demo says what to do next; at a terminal it leaves a fleet behind if one wants it, else nothing."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import Shell, require_rabbitmq

QUESTION = "with the web app open on this run? [y/N]"

pytestmark = [pytest.mark.rabbit, pytest.mark.slow]


def demo_at_a_terminal(shell: Shell, answer: bytes) -> str:
    """All that the demo shows to somebody who answers its question so."""
    leader, follower = pty.openpty()
    environment = shell.environment() | {"BROWSER": "true", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mindbus.cli.main", "demo"],
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    with process, os.fdopen(leader, "r+b", buffering=0) as terminal:
        while True:
            try:
                piece = terminal.read(4096)
            except OSError:  # as Linux reports that the other end is closed
                break
            if not piece:
                break
            if QUESTION.encode() in (shown := shown + piece) and answer:
                terminal.write(answer)
                answer = b""
    assert process.returncode == 0, shown
    return shown.decode()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    require_rabbitmq()
    return Shell(tmp_path / "data")


def test_without_a_terminal_it_leaves_nothing_behind(shell: Shell) -> None:
    said = shell.spawn("demo")

    assert (said.returncode, "What next:" in said.stdout, QUESTION in said.stdout) == (0, True, False)
    assert "only chosen and arranged sentences of the brief" in said.stdout
    assert shell.processes() == {}


def test_at_a_terminal_it_leaves_the_fleet_with_its_run_if_one_wants_it(shell: Shell) -> None:
    shown = demo_at_a_terminal(shell, b"y\n")
    left = Shell(shell.data_dir / "demo")
    try:
        (run,) = left.json("process", "ls")

        assert run["run_id"] in shown.split("Opened ")[1]
        assert f"MINDBUS_DATA_DIR={shell.data_dir / 'demo'} mindbus down" in shown
    finally:
        left.ok("down")


@pytest.mark.proof
def test_at_a_terminal_it_leaves_nothing_for_who_does_not(shell: Shell) -> None:
    assert QUESTION in demo_at_a_terminal(shell, b"\n")
    assert shell.processes() == {}

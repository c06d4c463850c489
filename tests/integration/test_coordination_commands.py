"""`mindbus locks`, `mindbus counters`, as somebody at a shell has them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.command_line import Shell

pytestmark = [pytest.mark.rabbit, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, fleet_settings: dict[str, str]) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("coordination") / "data", settings=fleet_settings)
    try:
        shell.ok("up", "-d", "--workers", "swm", spawned=True)
        yield shell
    finally:
        shell.ok("down")


def refused(shell: Shell, *arguments: str) -> dict[str, Any]:
    done = shell.run(*arguments, "--json")
    assert done.returncode == 1
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_lock_outlives_the_command_that_took_it(shell: Shell) -> None:
    lock = shell.json("locks", "acquire", "report", "--as", "agent.editor", "--lease-ms", "60000")

    assert lock.keys() == {"token", "fencing", "expires"}
    assert lock["fencing"] == 1
    taken = refused(shell, "locks", "acquire", "report", "--as", "agent.critic", "--wait-ms", "200")
    assert taken["code"] == "conflict"
    info = shell.json("locks", "info", "report")
    assert info["holder"].startswith("agent.editor")
    assert info["waiting"] == 0

    assert refused(shell, "locks", "release", "report", "--token", "another")["code"] == "conflict"
    assert shell.json("locks", "release", "report", "--token", lock["token"]) == {"name": "report", "released": True}
    assert shell.json("locks", "acquire", "report", "--lease-ms", "100")["fencing"] == 2


def test_a_counter_adds_an_operation_once(shell: Shell) -> None:
    assert shell.json("counters", "incr", "drafts") == {"value": 1}
    assert shell.json("counters", "incr", "drafts", "--by", "5", "--operation", "import-7") == {"value": 6}
    assert shell.json("counters", "incr", "drafts", "--by", "5", "--operation", "import-7") == {"value": 6}
    assert shell.json("counters", "incr", "drafts", "--by", "-2") == {"value": 4}
    assert shell.json("counters", "get", "drafts") == {"value": 4}
    assert "drafts stands at 4" in shell.ok("counters", "get", "drafts")


def test_what_cannot_be_asked_is_said_at_once(shell: Shell) -> None:
    for wrong in (("locks", "acquire", "no name"), ("locks", "acquire", "a", "--lease-ms", "1")):
        done = shell.run(*wrong)
        assert done.returncode == 2

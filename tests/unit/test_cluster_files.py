"""Files of compose/cluster.yaml: two of every worker, scripts that a shell can read, passwords that they ask for."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.command_line import Shell
from tests.installed import FLEET

CLUSTER = Path(__file__).parents[2] / "compose" / "cluster"
SCRIPTS = sorted(CLUSTER.glob("*-node"))


def test_there_are_two_of_every_worker_that_may_be_there_twice() -> None:
    services = yaml.safe_load((CLUSTER / "workers.yaml").read_text())["services"]
    assert services.keys() == FLEET.keys() - {"gateway", "sim"}
    assert {service["deploy"]["replicas"] for service in services.values()} == {2}


def test_whoever_waits_for_an_answer_knows_how_long_a_model_may_take() -> None:
    services = yaml.safe_load((CLUSTER.parent / "compose.yaml").read_text())["services"]
    waiting = [services[name]["environment"] for name in ("gateway", "cli", "dialogue")]
    assert all("MINDBUS_LLM_TIMEOUT_S" in environment for environment in waiting)
    assert "MINDBUS_LLM_API_KEY" not in waiting[0]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_may_be_run_and_can_be_read(script: Path) -> None:
    shell = script.read_text().splitlines()[0].removeprefix("#!")
    subprocess.run((shell, "-n", script), check=True)
    assert os.access(script, os.X_OK)


def test_what_the_servers_read_of_their_keys_is_made(tmp_path: Path) -> None:
    Shell(tmp_path / "data").ok("credentials", str(tmp_path), "--owner", str(os.getuid()))
    read = {
        (script.name.removesuffix("-node"), file)
        for script in SCRIPTS
        for file in re.findall(r"/keys/([\w.]+)", script.read_text())
    }
    assert {("rabbitmq", "cookie"), ("postgres", "replica"), ("redis", "replica")} <= read
    assert all((tmp_path / server / file).read_text() for server, file in read)


def test_who_may_do_what_in_redis(tmp_path: Path) -> None:
    Shell(tmp_path / "data").ok("credentials", str(tmp_path), "--owner", str(os.getuid()))
    users = dict(line.split(maxsplit=2)[1:] for line in (tmp_path / "redis" / "users.acl").read_text().splitlines())
    assert users.keys() == {"default", "swm", "history", "replica", "proxy"}
    assert users["default"] == "off"
    assert users["proxy"] == "on nopass -@all +role"
    assert "+@all" not in users["replica"]

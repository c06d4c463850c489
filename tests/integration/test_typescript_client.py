"""The TypeScript client: generated from the description as it is, compiled, and used as the guide says."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from config.settings import FleetSettings
from tests.brokers import Broker
from tests.gateways import gateway_settings, serving
from tests.installed import FLEET
from tests.newcomer import ROOT, files_of

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(240)]

MODULES = ROOT / ".venv" / "node" / "node_modules"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The client's folder in a project's `node_modules`, with the packages that it takes."""
    if shutil.which("node") is None or not (MODULES / "openapi-typescript").is_dir():
        pytest.skip("Node or its packages are missing: install nodejs and npm, then make setup-tests")
    modules = tmp_path / "node_modules"
    modules.mkdir()
    for each in MODULES.iterdir():
        (modules / each.name).symlink_to(each)
    shutil.copytree(ROOT / "clients" / "typescript", modules / "mindbus-client", ignore=shutil.ignore_patterns("dist"))
    return modules / "mindbus-client"


def node(folder: Path, tool: str, *arguments: str) -> None:
    done = subprocess.run(
        [MODULES / ".bin" / tool, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_the_client_is_of_this_api_compiles_and_does_what_the_guide_shows(
    broker: Broker, vhost_url: str, migrated_folder: Path, package: Path
) -> None:
    schema = package / "src" / "schema.ts"
    committed = schema.read_text(encoding="utf-8")
    tool, _source, *options = json.loads((package / "package.json").read_text())["scripts"]["generate"].split()
    node(package, tool, str(ROOT / "docs" / "reference" / "openapi.json"), *options)
    assert schema.read_text(encoding="utf-8") == committed, "npm run generate in clients/typescript"
    node(package, "tsc")

    project = package.parent.parent
    (project / "package.json").write_text(json.dumps({"type": "module"}))
    (project / "remember.ts").write_text(files_of(ROOT / "docs/how-to/gateway.md")["remember.ts"], encoding="utf-8")
    compiling = ("--strict", "--target", "es2022", "--module", "nodenext", "--types", "node")
    node(project, "tsc", *compiling, "remember.ts")
    settings: FleetSettings = gateway_settings(broker, vhost_url, migrated_folder)
    async with serving(
        FLEET["storage"], FLEET["glm"], FLEET["swm"], FLEET["orchestrator"], settings=settings
    ) as gateway:
        environment = {"PATH": os.environ["PATH"], "U": str(gateway.worker.url), "TOKEN": "any"}
        told = await asyncio.to_thread(
            subprocess.run,
            ["node", "remember.js"],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert (told.stdout, told.stderr) == ("[ 'The release is in March.' ]\n404 not_found\n", "")

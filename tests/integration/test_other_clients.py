"""Clients other than the library's: Node by docs/wire.md, FastStream and Celery by docs/how-to/bridges.md."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bus_schema.glm import RetrieveKems
from bus_schema.kem_query import KemQuery
from mindbus.bus.permissions import instance_mark
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.newcomer import ROOT, files_of
from tests.private_users import private_node, settings_of

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(180)]

MODULES = ROOT / ".venv" / "node" / "node_modules"
SAID = "Apollo ships on the 14th of March."


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNode]:
    """RabbitMQ on which Anna may do what the account of a person may, and nothing else."""
    with private_node(tmp_path_factory.mktemp("node"), ("glm", "user.anna")) as node:
        yield node


def client_in(folder: Path) -> Path:
    """The program of the page, beside its one package."""
    if shutil.which("node") is None or not (MODULES / "amqplib").is_dir():
        pytest.skip("Node or its amqplib is missing: install nodejs and npm, then make setup-tests")
    program = folder / "client.mjs"
    program.write_text(files_of(ROOT / "docs" / "wire.md")["client.mjs"], encoding="utf-8")
    (folder / "node_modules").symlink_to(MODULES)
    return program


async def told_by(program: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """How it ends, and what it says."""
    process = await asyncio.create_subprocess_exec(
        "node",
        str(program),
        *arguments,
        env={"PATH": os.environ["PATH"], **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_program_in_node_sends_a_command_and_hears_its_reply_and_its_event(
    node: PrivateNode, migrated_folder: Path
) -> None:
    program = client_in(migrated_folder)
    environment = {
        "MINDBUS_AMQP_URL": node.worker_urls["user.anna"],
        "MINDBUS_INSTANCE_PREFIX": instance_mark("user.anna"),
    }
    async with fleet_of(FLEET["glm"], settings=settings_of(node, migrated_folder)) as fleet:
        code, said, complaint = await told_by(program, SAID, **environment)
        found = await fleet.bus.request(RetrieveKems(query=KemQuery(text_query="Apollo")))
        strange = await told_by(program, SAID, **(environment | {"MINDBUS_INSTANCE_PREFIX": ""}))
        silent, _, refusal = await told_by(program, **environment)

    assert (code, complaint) == (0, ""), complaint
    (kem,) = found.items
    reply, event = said.splitlines()
    assert reply == f"reply: {kem.kem.id} version 1"
    assert event.startswith(f"event: mb.evt.kem.stored.v1 of {kem.kem.id}, asked for by ")
    assert (kem.kem.content, kem.kem.owner) == (SAID, "user.anna")
    assert strange[0] != 0, "without the prefix the queue of replies might be another's"
    assert "ACCESS_REFUSED" in strange[2]
    assert silent != 0
    assert "invalid: kem" in refusal


def test_the_program_is_as_short_as_the_page_says() -> None:
    lines = files_of(ROOT / "docs" / "wire.md")["client.mjs"].splitlines()

    assert len([line for line in lines if line.strip() and not line.strip().startswith("//")]) <= 60


@asynccontextmanager
async def program(folder: Path, page_file: str, *command: str, **environment: str) -> AsyncIterator[Callable[[], str]]:
    """A program of the guide that runs in a folder; what it has said so far."""
    (folder / page_file).write_text(files_of(ROOT / "docs" / "how-to" / "bridges.md")[page_file], encoding="utf-8")
    log = folder / f"{page_file}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *command,
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            stdout=output,
            stderr=output,
        )
        try:
            yield log.read_text
        finally:
            process.terminate()
            await process.wait()


async def test_a_faststream_application_sends_a_command_and_hears_reply_and_event(
    vhost_url: str, migrated_folder: Path
) -> None:
    own = {"MINDBUS_AMQP_URL": vhost_url, "MINDBUS_DATA_DIR": str(migrated_folder), "NOTE": SAID}
    command = ("faststream", "run", "notes_faststream:app")
    async with (
        fleet_of(FLEET["glm"], settings=settings_for(vhost_url, migrated_folder)) as fleet,
        program(migrated_folder, "notes_faststream.py", *command, **own) as said,
    ):
        await until(lambda: "event: " in said() and "reply: " in said(), 60, "it hears both")
        (message_id,) = re.findall("sent: (.+)", said())
        (kem,) = (await fleet.bus.request(RetrieveKems(query=KemQuery(text_query="Apollo")))).items
        told = said()

    assert f"reply: ok to {message_id}" in told
    assert f"event: {kem.kem.id} of {message_id}" in told
    assert (kem.kem.content, kem.kem.owner) == (SAID, "user.anna")


async def test_a_celery_task_sends_a_command_and_another_is_called_for_the_event(
    vhost_url: str, migrated_folder: Path
) -> None:
    own = {"MINDBUS_AMQP_URL": vhost_url, "MINDBUS_DATA_DIR": str(migrated_folder)}
    worker = ("celery", "-A", "notes_celery", "worker", "--pool", "solo", "--loglevel", "WARNING")
    call = ("celery", "-A", "notes_celery", "call", "notes_celery.store_note", "--args", f'["{SAID}"]')
    async with (
        fleet_of(FLEET["glm"], settings=settings_for(vhost_url, migrated_folder)) as fleet,
        program(migrated_folder, "notes_celery.py", *worker, **own) as said,
    ):
        calling = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *call, cwd=migrated_folder, env={**os.environ, **own}, stdout=subprocess.PIPE
        )
        task_id = (await calling.communicate())[0].decode().strip()
        await until(lambda: "event: " in said(), 60, "the task for events is called")
        (kem,) = (await fleet.bus.request(RetrieveKems(query=KemQuery(text_query="Apollo")))).items
        told = said()

    assert f"sent: {task_id}" in told
    assert f"event: {kem.kem.id}" in told
    assert (kem.kem.content, kem.kem.owner) == (SAID, "user.anna")

"""A folder of documents becomes memory by the command line, where questions in other words find them again."""

import asyncio
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bus_schema.glm import RetrieveKems
from bus_schema.kem_query import KemQuery
from config.settings import FleetSettings
from mindbus import Client
from tests.command_line import Shell
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.memory_documents import Document, documents

pytestmark = [pytest.mark.rabbit, pytest.mark.slow, pytest.mark.timeout(1800)]

SHORT, LONG = 40, 200
TOP, WANTED = 5, 0.95


@dataclass(frozen=True)
class Asked:
    """A question, with the paths of what came first."""

    question: str
    wanted: str
    found: Sequence[str]

    @property
    def is_right(self) -> bool:
        return self.wanted in self.found


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path / "data")


async def asked(bus: Client, texts: Sequence[Document]) -> list[Asked]:
    """As `mindbus memory search --top 5` asks, on one connection."""
    found = []
    for text in texts:
        for question in text.questions:
            page = await bus.request(RetrieveKems(query=KemQuery(text_query=question), page_size=TOP))
            assert not page.is_degraded
            found.append(Asked(question, f"{text.name}.md", [str(item.kem.metadata["path"]) for item in page.items]))
    return found


@pytest.mark.parametrize("count", [SHORT, pytest.param(LONG, marks=pytest.mark.proof)])
async def test_documents_are_all_there_and_found_again(
    count: int, settings: FleetSettings, tmp_path: Path, report: Callable[[str], None]
) -> None:
    texts = documents(count)
    folder = tmp_path / "documents"
    folder.mkdir()
    for text in texts:
        (folder / f"{text.name}.md").write_text(text.text, encoding="utf-8")
    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})

    async with fleet_of(FLEET["storage"], FLEET["kps"], FLEET["glm"], settings=settings) as fleet:
        imported = await asyncio.to_thread(shell.json, "memory", "import", str(folder))
        again = await asyncio.to_thread(shell.json, "memory", "import", str(folder))
        checked = await asyncio.to_thread(shell.json, "glm", "check")
        answers = await asked(fleet.bus.acting_as("user.local"), texts)
        search = ("memory", "search", answers[0].question, "--top", str(TOP))
        printed = await asyncio.to_thread(shell.json, *search)

    assert [document["path"] for document in imported["documents"]] == sorted(f"{text.name}.md" for text in texts)
    assert (imported["failed"], imported["skipped"]) == ([], [])
    assert {document["status"] for document in again["documents"]} == {"unchanged"}
    assert again["kems"] == imported["kems"] >= count
    assert checked["clean"] is True
    assert checked["kems"] == checked["with_vector"] == checked["vectors"] == imported["kems"]
    right = sum(each.is_right for each in answers)
    russian = sum(bool(re.search("[а-я]", each.question)) for each in answers)
    report(
        f"{count} documents, {imported['kems']} units: the right one among the first {TOP}"
        f" for {right} of {len(answers)} questions, {russian} of them Russian"
    )
    assert right >= WANTED * len(answers), [each for each in answers if not each.is_right]
    assert [each["metadata"]["path"] for each in printed] == list(answers[0].found)


async def test_what_is_imported_again_as_private_has_a_private_document(
    settings: FleetSettings, tmp_path: Path
) -> None:
    file = tmp_path / "safe.md"
    file.write_text("The code of the safe is in the blue folder.", encoding="utf-8")
    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})

    async with fleet_of(FLEET["storage"], FLEET["kps"], FLEET["glm"], settings=settings):
        found = []
        for visibility in ("public", "private", "private"):
            told = await asyncio.to_thread(shell.json, "memory", "import", str(file), "--visibility", visibility)
            artifact_id = told["documents"][0]["artifact_id"]
            shown = await asyncio.to_thread(shell.json, "artifacts", "show", artifact_id)
            found.append((shown["visibility"], told["documents"][0]["status"]))

    assert [visibility for visibility, _ in found] == ["public", "private", "private"]
    assert found[2][1] == "unchanged"


async def test_a_text_whose_charset_is_told_is_read_by_it(settings: FleetSettings, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_bytes("Приём по средам.".encode("koi8-r"))
    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})

    async with fleet_of(FLEET["storage"], FLEET["kps"], FLEET["glm"], settings=settings) as fleet:
        unread = await asyncio.to_thread(shell.run, "memory", "import", str(note), "--json")
        read = await asyncio.to_thread(shell.json, "memory", "import", str(note), "--encoding", "KOI8-R")
        again = await asyncio.to_thread(shell.json, "memory", "import", str(note), "--encoding", "koi8-r")
        found = await fleet.bus.acting_as("user.local").request(RetrieveKems(query=KemQuery(text_query="средам")))

    assert unread.returncode == 1
    assert [document["status"] for document in (*read["documents"], *again["documents"])] == ["stored", "unchanged"]
    assert [item.kem.content for item in found.items] == ["Приём по средам."]


async def test_at_a_terminal_it_says_how_far_it_has_come_with_a_long_document(
    settings: FleetSettings, tmp_path: Path
) -> None:
    book = tmp_path / "book.md"
    book.write_text("\n\n".join(text.text for text in documents(SHORT)), encoding="utf-8")
    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})
    command = f"{sys.executable} -m mindbus.cli.main memory import {book} --max-chars 400"

    async with fleet_of(FLEET["storage"], FLEET["kps"], FLEET["glm"], settings=settings):
        process = await asyncio.create_subprocess_exec(
            "script",
            "-qec",
            command,
            "/dev/null",
            env=shell.environment() | {"COLUMNS": "200"},
            stdin=DEVNULL,
            stdout=PIPE,
        )
        shown, _ = await process.communicate()

    assert process.returncode == 0
    assert re.search(rb"book\.md \d+/\d+", shown), shown[-2000:]

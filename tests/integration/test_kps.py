"""Documents on their way into memory: storage, knowledge processing, the global memory on a real broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bus_schema.glm import CheckMemory, RetrieveKems
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from bus_schema.kps import KemProcessed, ProcessRawData
from bus_schema.replies import Code
from bus_schema.storage import GetVersions
from config.settings import FleetSettings
from mindbus.errors import ReplyError
from mindbus.sdk.artifacts import open_artifacts
from tests.command_line import Shell
from tests.documents import a_docx, a_pdf, a_protected_docx
from tests.fleets import Fleet, fleet_of, settings_for
from tests.hashing_embedder import HashingEmbedder
from tests.installed import FLEET
from tests.kps_kit import kps_with

pytestmark = [pytest.mark.rabbit, pytest.mark.slow]


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path / "data")


@asynccontextmanager
async def memory(settings: FleetSettings, *others: str) -> AsyncIterator[Fleet]:
    makers = (FLEET[name] for name in ("storage", *others))
    async with fleet_of(*makers, kps_with(HashingEmbedder(settings.embedding_model, 384)), settings=settings) as fleet:
        yield fleet


async def found(fleet: Fleet, identity: str = "user.local", **query: object) -> list[Kem]:
    bus = fleet.bus.acting_as(identity)
    page = await bus.request(RetrieveKems(query=KemQuery.model_validate(query), page_size=200))
    return [item.kem for item in page.items]


async def test_a_folder_is_learned_and_learned_again_without_change(settings: FleetSettings, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    (folder / "inner").mkdir(parents=True)
    (folder / "plan.md").write_text("# План\n\nРелиз в пятницу.", encoding="utf-8")
    (folder / "inner" / "report.pdf").write_bytes(a_pdf(["First page."], ["Вторая страница."]))
    (folder / "inner" / "letter.docx").write_bytes(a_docx((1, "Letter"), "Dear Anna."))
    (folder / "locked.docx").write_bytes(a_protected_docx())
    (folder / "picture.png").write_bytes(b"\x89PNG")
    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})

    async with memory(settings, "glm") as fleet:
        ended = await asyncio.to_thread(shell.run, "memory", "import", str(folder), "--meta", "team=core", "--json")
        again = await asyncio.to_thread(shell.run, "memory", "import", str(folder), "--meta", "team=core")
        kems = await found(fleet, metadata_filters={"team": "core"})
        report = await fleet.bus.request(CheckMemory())

    assert ended.returncode == 1
    assert '"kems": 3' in ended.stdout
    assert '"skipped": [\n    "picture.png"\n  ]' in ended.stdout
    assert "asks for a password" in ended.stdout
    assert "3 documents, 3 of them unchanged: 3 units" in again.stdout
    assert sorted(str(kem.metadata["path"]) for kem in kems) == ["inner/letter.docx", "inner/report.pdf", "plan.md"]
    assert report.is_clean
    assert report.with_vector == 3
    assert {kem.version for kem in kems} == {1}


async def imported(settings: FleetSettings, path: Path, *options: str) -> str:
    shell = Shell(settings.data_dir, settings={"MINDBUS_AMQP_URL": str(settings.amqp_url)})
    return (await asyncio.to_thread(shell.run, "memory", "import", str(path), *options)).stdout


async def learned_again(fleet: Fleet, kem: Kem) -> Code:
    """How memory says no to the version before the one that the unit is of."""
    assert kem.source is not None
    assert kem.source.artifact is not None
    versions = await fleet.bus.request(GetVersions(artifact_id=kem.source.artifact.artifact_id))
    with pytest.raises(ReplyError) as late:
        await fleet.bus.request(ProcessRawData(source=versions.items[-2].ref, content_type="text/markdown"))
    return late.value.code


async def test_of_a_changed_document_nothing_old_is_left(settings: FleetSettings, tmp_path: Path) -> None:
    document, other = tmp_path / "plan.md", tmp_path / "other" / "plan.md"
    other.parent.mkdir()
    other.write_text("# Another plan\n\nNobody changes it.", encoding="utf-8")

    async with memory(settings, "glm") as fleet:
        await imported(settings, other)
        document.write_text("\n\n".join(f"# Step {n}\n\nОписание шага {n}." * 9 for n in range(4)), encoding="utf-8")
        await imported(settings, document)
        document.write_text("# План\n\nРелиз в пятницу.", encoding="utf-8")
        # However it is cut.
        changed = await imported(settings, document, "--max-chars", "500")
        unchanged = await imported(settings, document, "--max-chars", "500")
        newest, oldest = await found(fleet)
        refused = await learned_again(fleet, newest)
        left = await found(fleet)
        report = await fleet.bus.request(CheckMemory())

    assert "0 of them unchanged: 1 units" in changed
    assert "1 of them unchanged: 1 units" in unchanged
    assert [str(kem.content).split("\n")[0] for kem in (oldest, newest)] == ["# Another plan", "# План"]
    assert refused is Code.CONFLICT
    assert [kem.id for kem in left] == [newest.id, oldest.id]
    assert report.is_clean


async def test_memory_down_is_waited_for_and_nothing_is_lost(settings: FleetSettings) -> None:
    async with memory(settings) as fleet, fleet.bus.subscribe(KemProcessed) as processed:
        await fleet.bus.send(ProcessRawData(raw_content="It can wait.", content_type="text/plain"))
        async with fleet_of(FLEET["glm"], settings=settings) as late:
            told = await anext(aiter(processed))
            kems = await found(late, ids=told.kem_ids)

    assert [kem.content for kem in kems] == ["It can wait."]


async def test_what_is_private_is_read_for_its_owner_alone(settings: FleetSettings) -> None:
    async with (
        memory(settings, "glm") as fleet,
        open_artifacts(fleet.bus.acting_as("user.anna"), settings) as artifacts,
    ):
        put = await artifacts.put(
            "Тайна.".encode(), artifact_type="note", trace="t1", visibility="private", content_type="text/plain"
        )
        command = ProcessRawData.model_validate(
            {"source": put.ref, "content_type": "text/plain", "rights": {"visibility": "private"}}
        )
        with pytest.raises(ReplyError) as refused:
            await fleet.bus.acting_as("user.boris").request(command, trace="t1")
        done = await fleet.bus.acting_as("user.anna").request(command, trace="t1")
        hers = await found(fleet, "user.anna", ids=done.kem_ids)
        his = await found(fleet, "user.boris", ids=done.kem_ids)

    assert refused.value.code is Code.NOT_FOUND
    assert [kem.source.artifact for kem in hers if kem.source] == [put.ref]
    assert his == []

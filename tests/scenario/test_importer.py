"""The role `importer`: a document becomes units of the run's starter, and a text with the numbers of its pages."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.artifacts import ArtifactRef
from bus_schema.messages import Nothing
from bus_schema.process import ExecuteStep, NamedInput, StepCompleted, StepFailed
from bus_schema.storage import SetTraceMembers
from config.settings import FleetSettings
from mindbus.bus.worker import WorkerContext
from mindbus.sdk.artifacts import open_artifacts
from mindbus.testing import DeliveryResult, deliver
from tests.documents import a_pdf
from tests.fleets import Fleet, fleet_of, settings_for
from tests.hashing_embedder import HashingEmbedder
from tests.installed import FLEET
from tests.kps_kit import ObedientMemory, kps_with
from workers.importer import ImporterWorker

RUN, ANNA = "run_1", "user.anna"
RINK = [f"{number}. The rink is let to the club until the first day of May." for number in range(1, 31)]
RENT = [f"{number}. The rent is 40,000 euros a year, to be paid in March." for number in range(1, 31)]
LEASE = a_pdf(RINK, RENT)


@pytest.fixture
def settings(tmp_path: Path) -> FleetSettings:
    return settings_for(f"memory://{tmp_path}", tmp_path, heartbeat_s=0.1)


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["storage"], ObedientMemory, kps_with(HashingEmbedder()), settings=settings) as fleet:
        members = (ANNA, "agent.importer", "svc.orchestrator")
        await fleet.bus.acting_as("svc.orchestrator").request(SetTraceMembers(trace_id=RUN, members=members), trace=RUN)
        yield fleet


async def imported(fleet: Fleet, settings: FleetSettings, *sources: ArtifactRef) -> DeliveryResult[Nothing]:
    importer = ImporterWorker(WorkerContext(settings, fleet.bus))
    order = ExecuteStep(
        run_id=RUN,
        step_id="import-1",
        attempt=1,
        produces="document",
        instructions="Import it.",
        inputs=tuple(NamedInput(name="brief", artifact=source) for source in sources),
        deadline=datetime.now(UTC) + timedelta(minutes=5),
        started_by=ANNA,
    )
    await importer.start()
    try:
        return await deliver(importer, order, by="svc.orchestrator", trace=RUN)
    finally:
        await importer.stop()


async def put(fleet: Fleet, settings: FleetSettings, content: bytes, content_type: str) -> ArtifactRef:
    async with open_artifacts(fleet.bus.acting_as(ANNA), settings) as artifacts:
        return (await artifacts.put(content, artifact_type="brief", content_type=content_type, trace=RUN)).ref


async def test_a_document_becomes_private_units_and_a_text_that_names_them(
    fleet: Fleet, settings: FleetSettings
) -> None:
    source = await put(fleet, settings, LEASE, "application/pdf")

    (done,) = (await imported(fleet, settings, source)).events(StepCompleted)

    async with open_artifacts(fleet.bus.acting_as(ANNA), settings) as artifacts:
        manifest = await artifacts.manifest(done.artifact.artifact_id, trace=RUN)
        text = (await artifacts.get(manifest.id, trace=RUN)).decode()
    assert text.startswith("[page 1]\n\n1. The rink is let")
    assert text.count("The rink is let") == len(RINK)
    assert text.count("The rent is 40,000") == len(RENT)
    assert "[page 2]\n\n" in text
    kems = fleet[ObedientMemory].kems
    assert manifest.context is not None
    assert (manifest.context.input_artifacts, set(manifest.context.input_kems)) == ((source.artifact_id,), set(kems))
    assert {(kem.owner, kem.visibility, kem.metadata["run_id"]) for kem in kems.values()} == {(ANNA, "private", RUN)}


async def test_a_file_that_nobody_can_read_fails_the_step_with_the_reason(
    fleet: Fleet, settings: FleetSettings
) -> None:
    source = await put(fleet, settings, LEASE[:200], "application/pdf")

    (failed,) = (await imported(fleet, settings, source)).events(StepFailed)

    assert not failed.retryable
    assert "PDF" in failed.reason or "damaged" in failed.reason, failed.reason

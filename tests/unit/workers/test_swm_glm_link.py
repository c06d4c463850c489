"""What the working memory hands on arrives, even beside what makes the global memory fail."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus_schema.glm import BatchItem, BatchReport, BatchStoreKems, KemPage, RetrieveKems
from bus_schema.replies import Code
from config.settings import FleetSettings
from memory.swm.working_memory import GlmAway
from mindbus import MessageContext, Worker, WorkerContext, on_command
from mindbus.errors import PermanentFailure, Rejected, TemporaryFailure
from tests.fleets import Fleet, fleet_of
from tests.memory_kit import a_draft
from workers.swm.units import GlmLink

pytestmark = pytest.mark.slow


class DelicateMemory(Worker):
    """A global memory that fails over one unit, whatever else comes with it."""

    name = "glm"
    attempts = 1

    def __init__(self, _kit: WorkerContext) -> None:
        self.stored: list[str] = []
        self.is_busy = self.is_late = False
        self.asked = 0

    @on_command
    async def retrieve(self, query: RetrieveKems) -> KemPage:
        self.asked += 1
        await asyncio.Event().wait()
        raise AssertionError("nothing ends the waiting")

    @on_command
    async def store(self, command: BatchStoreKems, _handling: MessageContext) -> BatchReport:
        ids = [str(draft.id) for draft in command.kems]
        if self.is_busy:
            raise TemporaryFailure("the database is busy")
        if self.is_late:
            raise Rejected(Code.EXPIRED, "nobody waits for this any more")
        if "kem_poison" in ids:
            raise PermanentFailure("this unit cannot be stored")
        self.stored += ids
        return BatchReport(items=tuple(BatchItem(kem_id=kem_id, status="stored", version=1) for kem_id in ids))


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    settings = FleetSettings(amqp_url=f"memory://{tmp_path}", data_dir=tmp_path, request_timeout_s=2, drain_s=0.5)
    async with fleet_of(DelicateMemory, settings=settings) as running:
        yield running


async def test_one_unit_that_the_global_memory_fails_over_does_not_keep_the_others(fleet: Fleet) -> None:
    drafts = [a_draft(id=f"kem_{name}") for name in ("1", "poison", "2")]

    items = (await GlmLink(fleet.bus).store(drafts, "agent.alice", "m1")).items

    assert fleet[DelicateMemory].stored == ["kem_1", "kem_2"]
    assert [(item.kem_id, item.status, item.code) for item in items] == [
        ("kem_1", "stored", None),
        ("kem_poison", "refused", Code.INTERNAL),
        ("kem_2", "stored", None),
    ]
    assert "this unit cannot be stored" in (items[1].error or "")


async def test_a_global_memory_that_does_not_answer_is_soon_left_in_peace(fleet: Fleet) -> None:
    link = GlmLink(fleet.bus)
    silent = await asyncio.gather(*(link.fetch(["kem_1"]) for _ in range(2)), return_exceptions=True)
    assert [type(each) for each in silent] == [GlmAway, GlmAway]
    # Readers do not wait as long as writers do.
    assert all("within 2 s" in str(each) for each in silent)

    with pytest.raises(GlmAway):
        await link.fetch(["kem_1"])
    with pytest.raises(GlmAway):
        await link.store([a_draft(id="kem_1")], "agent.alice", "m1")

    assert fleet[DelicateMemory].asked == 2
    assert fleet[DelicateMemory].stored == []


async def test_while_the_global_memory_is_busy_its_units_wait(fleet: Fleet) -> None:
    fleet[DelicateMemory].is_busy = True

    with pytest.raises(GlmAway, match="busy"):
        await GlmLink(fleet.bus).store([a_draft(id="kem_1")], "agent.alice", "m1")


async def test_a_batch_that_came_too_late_waits_and_is_not_taken_apart(fleet: Fleet) -> None:
    """Taken apart, its units would go under new ids, and be stored twice where an earlier copy is carried out, too."""
    fleet[DelicateMemory].is_late = True

    for drafts in (["kem_1"], ["kem_1", "kem_2"]):
        with pytest.raises(GlmAway, match="nobody waits"):
            await GlmLink(fleet.bus).store([a_draft(id=kem_id) for kem_id in drafts], "agent.alice", "m1")

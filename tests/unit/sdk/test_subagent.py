"""The base of sub-agents: a delegation is done once, in time, not too deep."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.replies import Code
from bus_schema.subagent import CancelTask, ExecuteTask, TaskDone
from mindbus import Client, Delegated, ReplyError, SubAgent, connect
from mindbus.testing.deliver import running
from mindbus.testing.wait import until
from tests.fleets import settings_for


class Patient(SubAgent):
    """Waits until it may go on; counts how often it began."""

    name = "subagent-patient"

    def __init__(self, context: object) -> None:
        super().__init__(context)  # type: ignore[arg-type]  # a WorkerContext
        Patient.begun, Patient.go_on = 0, asyncio.Event()

    begun = 0
    go_on = asyncio.Event()

    async def execute(self, work: Delegated) -> str:
        Patient.begun += 1
        if work.task == "in a hurry":
            raise TimeoutError("the archive does not answer")
        if work.task == "garbled":
            return " a\ud800\0b "
        await Patient.go_on.wait()
        return f"{work.task}: done"


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Client]:
    async with running(Patient, settings=settings_for(f"memory://{tmp_path}", tmp_path)) as client:
        yield client


async def ask(bus: Client, delegation_id: str = "dlg_1", **fields: object) -> TaskDone:
    order = ExecuteTask.model_validate({"task": "x", "chat_id": 12345, "delegation_id": delegation_id} | fields)
    return await bus.request(order, to="subagent-patient")


async def test_whoever_asks_again_waits_for_the_same_work_and_hears_the_same(bus: Client) -> None:
    both = [asyncio.create_task(ask(bus)) for _ in range(2)]
    await until(lambda: Patient.begun == 1)
    Patient.go_on.set()

    assert [(await each).response for each in both] == ["x: done"] * 2
    assert (await ask(bus)).response == "x: done"
    assert Patient.begun == 1
    assert (await ask(bus, chat_id=778, task="y")).response == "y: done"


async def test_what_is_not_done_by_its_deadline_is_dropped(bus: Client) -> None:
    with pytest.raises(ReplyError) as late:
        await ask(bus, deadline=datetime.now(UTC) + timedelta(seconds=0.1))
    assert late.value.code is Code.EXPIRED


async def test_a_limit_of_its_own_is_not_that_of_the_task(bus: Client) -> None:
    with pytest.raises(ReplyError, match="TimeoutError: the archive does not answer"):
        await ask(bus, task="in a hurry")


async def test_what_no_wire_carries_is_cleaned_out_of_an_answer(bus: Client) -> None:
    assert (await ask(bus, task="garbled")).response == "a?b"


async def test_what_is_cancelled_is_dropped_and_may_be_asked_anew(bus: Client) -> None:
    asked = asyncio.create_task(ask(bus))
    await until(lambda: Patient.begun == 1)
    await bus.request(CancelTask(delegation_id="dlg_1"), to="subagent-patient")
    with pytest.raises(ReplyError, match="was cancelled"):
        await asked
    await bus.request(CancelTask(delegation_id="dlg_unknown"), to="subagent-patient")

    Patient.go_on.set()
    assert (await ask(bus)).response == "x: done"


async def test_nobody_but_who_delegated_and_operators_cancel(bus: Client, tmp_path: Path) -> None:
    settings = settings_for(f"memory://{tmp_path}", tmp_path)
    cancel = CancelTask(delegation_id="dlg_1", chat_id="12345")
    refusals: list[str] = []
    async with connect("user.12345", settings=settings) as anna, connect("svc.gateway", settings=settings) as older:
        for canceller, chat_id in ((anna, "12345"), (bus, "12345"), (older, None)):
            Patient.begun = 0
            asked = asyncio.create_task(ask(anna))
            await until(lambda: Patient.begun == 1)
            for identity in ("user.boris", "agent.dialogue"):
                async with connect(identity, settings=settings) as other:
                    with pytest.raises(ReplyError) as refused:
                        await other.request(cancel, to="subagent-patient")
                refusals.append(refused.value.message)
            assert not asked.done()
            await canceller.request(cancel.model_copy(update={"chat_id": chat_id}), to="subagent-patient")
            with pytest.raises(ReplyError, match="was cancelled"):
                await asked
    assert ["may not send this" in refusals[0], refusals[1]] == [
        True,
        "only whoever has delegated this, or an operator, cancels it",
    ]


async def test_delegations_of_delegations_have_an_end(bus: Client) -> None:
    with pytest.raises(ReplyError, match="go in a circle"):
        await ask(bus, depth=4)

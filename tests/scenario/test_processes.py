"""Runs, told in messages: the orchestrator among scripted roles, on either transport."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.echo_role import EchoWorker
from benchmarks.runs import put_brief
from bus_schema.envelope import Envelope
from bus_schema.ids import mint
from bus_schema.messages import Event
from bus_schema.process import (
    CancelProcess,
    ExecuteStep,
    GetProcess,
    ListProcesses,
    NamedInput,
    ProcessCancelled,
    ProcessCompleted,
    ProcessFailed,
    ProcessStarted,
    StepCompleted,
    StepFailed,
)
from bus_schema.replies import Code
from bus_schema.runs import Run, RunStatus, StepStatus
from config.settings import FleetSettings
from mindbus import Client, MessageContext, ReplyError, WorkerContext
from mindbus.bus.worker import utc_now
from mindbus.sdk.artifacts import open_artifacts
from mindbus.sdk.steps import artifact_id_of
from mindbus.sdk.transfers import PutOptions
from mindbus.testing.wait import PATIENCE, until
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.process_kit import (
    ROLES,
    ScriptedRole,
    ScriptedStorage,
    a_role,
    a_start,
    a_step,
    an_orchestrator,
    artifact_of,
    buffered,
    completed,
    failed,
    manifest_of,
    registered,
)
from tests.raw_amqp import an_envelope


@pytest.fixture(params=["memory", pytest.param("rabbit", marks=pytest.mark.rabbit)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> FleetSettings:
    in_memory = f"memory://{secrets.token_hex(4)}"
    url = in_memory if request.param == "memory" else request.getfixturevalue("vhost_url")
    return settings_for(url, tmp_path)


async def run_that(bus: Client, run_id: str, holds: Callable[[Run], object], deadline_s: float = 20) -> Run:
    """The run, once it is so."""

    async def look() -> Run | None:
        run = await bus.request(GetProcess(run_id=run_id))
        return run if holds(run) else None

    found: Run | None = await until(look, deadline_s=deadline_s)
    assert found is not None
    return found


def is_over(run: Run) -> bool:
    return run.status not in (RunStatus.STARTING, RunStatus.RUNNING)


def status_of(run: Run, step_id: str) -> StepStatus:
    return next(step.status for step in run.steps if step.step_id == step_id)


def step_is(step_id: str, status: StepStatus) -> Callable[[Run], bool]:
    return lambda run: status_of(run, step_id) is status


async def test_the_article_card_runs_from_brief_to_final(settings: FleetSettings, tmp_path: Path) -> None:
    start = a_start(card_name="article")
    team = [a_role(role) for role in ROLES]
    async with fleet_of(ScriptedStorage, an_orchestrator(tmp_path), *team, settings=settings) as fleet:
        async with fleet.bus.subscribe(ProcessStarted) as started, fleet.bus.subscribe(ProcessCompleted) as ended:
            assert (await fleet.bus.request(start)).run_id == start.run_id
            first = await anext(aiter(started))
            last = await anext(aiter(ended))
        run = await fleet.bus.request(GetProcess(run_id=start.run_id))
        storage = fleet[ScriptedStorage]

    assert run.status is RunStatus.COMPLETED
    assert run.result == last.result == artifact_of(run.run_id, "final", 1)
    assert [(step.step_id, step.status, step.attempt) for step in run.steps] == [
        (step_id, StepStatus.COMPLETED, 1) for step_id in ("research", "ideas", "draft", "critique", "edit", "final")
    ]
    members = (*(f"agent.{role}" for role in sorted(ROLES)), "svc.orchestrator", "user.local")
    assert first.members == storage.members[start.run_id] == members
    assert storage.asked_by == {"svc.orchestrator"}


async def test_a_step_gets_the_inputs_that_its_card_names(settings: FleetSettings, tmp_path: Path) -> None:
    start = a_start(a_step("find"), a_step("write", "brief", "find", role="editor"))
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("editor"), a_role("critic")
    async with fleet_of(*makers, settings=settings) as fleet:
        await fleet.bus.request(start)
        await run_that(fleet.bus, start.run_id, is_over)
        (order,) = fleet[ScriptedRole].orders

    found = artifact_of(start.run_id, "find", 1)
    assert [(given.name, given.artifact) for given in order.inputs] == [("brief", start.inputs[0]), ("find", found)]


async def test_a_failed_attempt_is_made_again(settings: FleetSettings, tmp_path: Path) -> None:
    async def stumble(order: ExecuteStep) -> Event:
        return failed(order) if order.attempt == 1 else completed(order)

    start = a_start(a_step("a"))
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic", stumble)
    async with fleet_of(*makers, settings=settings) as fleet:
        await fleet.bus.request(start)
        run = await run_that(fleet.bus, start.run_id, is_over)
        attempts = [order.attempt for order in fleet[ScriptedRole].orders]

    assert (run.status, attempts) == (RunStatus.COMPLETED, [1, 2])


async def test_a_critical_step_that_cannot_succeed_fails_the_run(settings: FleetSettings, tmp_path: Path) -> None:
    async def refuse(order: ExecuteStep) -> Event:
        return failed(order, retryable=False)

    start = a_start(a_step("a"), a_step("b", "a"))
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic", refuse)
    async with fleet_of(*makers, settings=settings) as fleet:
        async with fleet.bus.subscribe(ProcessFailed, trace=start.run_id) as ends:
            await fleet.bus.request(start)
            event = await anext(aiter(ends))
        run = await fleet.bus.request(GetProcess(run_id=start.run_id))

    assert (event.step_id, event.reason) == ("a", "модель молчит")
    assert [step.status for step in run.steps] == [StepStatus.FAILED, StepStatus.CANCELLED]


async def test_a_silent_attempt_times_out_and_its_late_result_is_ignored(
    settings: FleetSettings, tmp_path: Path
) -> None:
    gate = asyncio.Event()

    async def sleep_through_the_first(order: ExecuteStep) -> Event | None:
        if order.attempt == 1:
            return None
        await gate.wait()
        return completed(order)

    start = a_start(a_step("a", timeout_s=1), a_step("b", "a", role="editor"))
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic", sleep_through_the_first), a_role("editor")
    async with fleet_of(*makers, settings=settings) as fleet:
        async with fleet.bus.subscribe(StepFailed, trace=start.run_id) as failures:
            await fleet.bus.request(start)
            timed_out = await anext(aiter(failures))
        role = fleet[ScriptedRole]
        await until(lambda: len(role.orders) == 2)
        await fleet.bus.publish(completed(role.orders[0]), trace=start.run_id)
        gate.set()
        run = await run_that(fleet.bus, start.run_id, is_over)

    assert (timed_out.attempt, timed_out.reason) == (1, "no result within 1 s of work")
    assert run.steps[0].artifact == artifact_of(start.run_id, "a", 2)
    assert run.status is RunStatus.COMPLETED


async def test_branches_of_the_review_run_side_by_side(settings: FleetSettings, tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def together(order: ExecuteStep) -> Event:
        await both.wait()
        return completed(order)

    start = a_start(card_name="review")
    team = a_role("critic", together), a_role("researcher", together), a_role("editor")
    async with fleet_of(ScriptedStorage, an_orchestrator(tmp_path), *team, settings=settings) as fleet:
        await fleet.bus.request(start)
        run = await run_that(fleet.bus, start.run_id, is_over)

    assert run.status is RunStatus.COMPLETED
    assert run.result == artifact_of(start.run_id, "edit", 1)


async def test_a_cancelled_run_stays_cancelled_whatever_comes_late(settings: FleetSettings, tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def wait(order: ExecuteStep) -> Event:
        await gate.wait()
        return completed(order)

    start = a_start(a_step("a"), a_step("b", "a", role="editor"))
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic", wait), a_role("editor")
    async with fleet_of(*makers, settings=settings) as fleet:
        await fleet.bus.request(start)
        await until(lambda: fleet[ScriptedRole].orders)
        async with fleet.bus.subscribe(ProcessCancelled) as ends:
            run = await fleet.bus.request(CancelProcess(run_id=start.run_id, reason="передумали"))
            event = await anext(aiter(ends))
        again = await fleet.bus.request(CancelProcess(run_id=start.run_id))
        gate.set()
        other = a_start(a_step("c"))
        await fleet.bus.request(other)
        await run_that(fleet.bus, other.run_id, is_over)
        late = await fleet.bus.request(GetProcess(run_id=start.run_id))

    assert (event.reason, event.cancelled_by) == ("передумали", "user.local")
    assert run.status is late.status is again.status is RunStatus.CANCELLED
    assert {step.status for step in late.steps} == {StepStatus.CANCELLED}


async def test_a_new_orchestrator_goes_on_where_the_old_one_stopped(settings: FleetSettings, tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def wait(order: ExecuteStep) -> Event:
        if order.step_id == "a":
            await gate.wait()
        return completed(order)

    start = a_start(a_step("a"), a_step("b", "a"), a_step("c", "b"))
    async with fleet_of(ScriptedStorage, a_role("critic", wait), settings=settings) as fleet:
        async with fleet_of(an_orchestrator(tmp_path), settings=settings):
            await fleet.bus.request(start)
            await until(lambda: fleet[ScriptedRole].orders)
        gate.set()
        async with fleet_of(an_orchestrator(tmp_path), settings=settings):
            run = await run_that(fleet.bus, start.run_id, is_over)
        seen = [(order.step_id, order.attempt) for order in fleet[ScriptedRole].orders]

    assert run.status is RunStatus.COMPLETED
    assert seen == [("a", 1), ("b", 1), ("c", 1)]


async def test_a_critical_artifact_in_a_buffer_is_waited_for(settings: FleetSettings, tmp_path: Path) -> None:
    async def buffer_the_first(order: ExecuteStep) -> Event:
        return buffered(order) if order.step_id == "a" else completed(order)

    start = a_start(a_step("a"), a_step("aside"), a_step("b", "a", "aside"))
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic", buffer_the_first)
    async with fleet_of(*makers, settings=settings) as fleet:
        await fleet.bus.request(start)
        waiting = await run_that(fleet.bus, start.run_id, step_is("a", StepStatus.PENDING_STORAGE))
        aside = await run_that(fleet.bus, start.run_id, step_is("aside", StepStatus.COMPLETED))
        assert status_of(aside, "b") is StepStatus.PENDING
        artifact = artifact_of(start.run_id, "a", 1)
        await fleet.bus.publish(registered(artifact, start.run_id), trace=start.run_id)
        run = await run_that(fleet.bus, start.run_id, is_over)

    assert waiting.status is RunStatus.RUNNING
    assert run.status is RunStatus.COMPLETED


async def test_an_artifact_that_is_not_critical_is_not_waited_for(settings: FleetSettings, tmp_path: Path) -> None:
    async def buffer_the_first(order: ExecuteStep) -> Event:
        return buffered(order) if order.step_id == "a" else completed(order)

    start = a_start(a_step("a", critical=False), a_step("b", "brief", "a"))
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic", buffer_the_first)
    async with fleet_of(*makers, settings=settings) as fleet:
        await fleet.bus.request(start)
        run = await run_that(fleet.bus, start.run_id, is_over)
        assert (run.status, status_of(run, "a")) == (RunStatus.COMPLETED, StepStatus.PENDING_STORAGE)
        await fleet.bus.publish(registered(artifact_of(start.run_id, "a", 1), start.run_id), trace=start.run_id)
        await run_that(fleet.bus, start.run_id, step_is("a", StepStatus.COMPLETED))


async def test_a_run_waits_for_a_storage_that_is_not_there_yet(settings: FleetSettings, tmp_path: Path) -> None:
    start = a_start(a_step("a"))
    async with fleet_of(an_orchestrator(tmp_path), a_role("critic"), settings=settings) as fleet:
        await fleet.bus.request(start)
        assert (await fleet.bus.request(GetProcess(run_id=start.run_id))).status is RunStatus.STARTING
        assert fleet[ScriptedRole].orders == []
        async with fleet_of(ScriptedStorage, settings=settings):
            run = await run_that(fleet.bus, start.run_id, is_over)

    assert run.status is RunStatus.COMPLETED


async def test_a_card_may_be_longer_than_any_story_on_the_bus(settings: FleetSettings, tmp_path: Path) -> None:
    chain = [a_step("s0"), *(a_step(f"s{number}", f"s{number - 1}") for number in range(1, 20))]
    start = a_start(*chain)
    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic")
    async with fleet_of(*makers, settings=settings) as fleet:
        await fleet.bus.request(start)
        run = await run_that(fleet.bus, start.run_id, is_over)

    assert run.status is RunStatus.COMPLETED


async def test_what_cannot_be_run_is_refused_with_the_reason(settings: FleetSettings, tmp_path: Path) -> None:
    async def refusal(ask: Awaitable[object]) -> tuple[Code, str]:
        with pytest.raises(ReplyError) as no:
            await ask
        return no.value.code, no.value.message

    async with fleet_of(ScriptedStorage, an_orchestrator(tmp_path), settings=settings) as fleet:
        bus = fleet.bus
        unknown = await refusal(bus.request(a_start(card_name="artcle")))
        cycle = await refusal(bus.request(a_start(a_step("a", "b"), a_step("b", "a"))))
        nobody = await refusal(bus.request(a_start(a_step("a", role="poet"))))
        absent = await refusal(bus.request(GetProcess(run_id="run_none")))
        nothing = await refusal(bus.request(CancelProcess(run_id="run_none")))
        page = await bus.request(ListProcesses())

    assert unknown == (
        Code.INVALID,
        "there is no card 'artcle'; shipped are article, due-diligence, review, or give a YAML file",
    )
    assert cycle == (Code.INVALID, "card: steps[0].inputs: these steps wait for each other: a → b → a; cut one")
    assert nobody[1].startswith("card: steps[0].role: there is no role 'poet'; known: critic, ")
    assert absent == nothing == (Code.NOT_FOUND, "there is no run run_none")
    assert page.items == ()


async def test_no_limit_runs_while_storage_is_away(settings: FleetSettings, tmp_path: Path) -> None:
    done = asyncio.Event()

    async def wait(order: ExecuteStep) -> Event:
        await done.wait()
        return completed(order)

    settings = settings.model_copy(update={"heartbeat_s": 0.2})
    start = a_start(a_step("a", timeout_s=5))
    makers = an_orchestrator(tmp_path, heartbeat_s=0.2), a_role("critic", wait)
    async with fleet_of(*makers, settings=settings) as fleet:
        async with fleet_of(ScriptedStorage, settings=settings):
            await fleet.bus.request(start)
            await until(lambda: fleet[ScriptedRole].orders)
            # It has been heard before it goes.
            went_at = time.monotonic() + 0.5
            await until(lambda: time.monotonic() > went_at)
        await until(lambda: time.monotonic() > went_at + 6)
        async with fleet_of(ScriptedStorage, settings=settings):
            back_at = time.monotonic()
            await until(lambda: time.monotonic() > back_at + 0.5)
            waiting = await fleet.bus.request(GetProcess(run_id=start.run_id))
            done.set()
            run = await run_that(fleet.bus, start.run_id, is_over)

    assert (waiting.steps[0].status, waiting.steps[0].attempt) == (StepStatus.RUNNING, 1)
    assert waiting.steps[0].due_at is not None
    assert waiting.steps[0].due_at - waiting.started_at > timedelta(seconds=10)
    assert (run.status, run.steps[0].attempt) == (RunStatus.COMPLETED, 1)


async def test_an_artifact_of_an_attempt_that_was_given_up_is_taken_instead_of_another_attempt(tmp_path: Path) -> None:
    settings = settings_for(f"memory://{secrets.token_hex(4)}", tmp_path)
    start = a_start(a_step("a"), a_step("b", "a"))

    async def leave_it(order: ExecuteStep) -> Event:
        if order.step_id == "b":
            return completed(order)
        left = {"artifact_id": artifact_id_of(order.run_id, "a", 1)}
        made = artifact_of(order.run_id, "a", 1).model_copy(update=left)
        fleet[ScriptedStorage].artifacts[made.artifact_id] = manifest_of(made, order.run_id)
        return failed(order)

    makers = ScriptedStorage, an_orchestrator(tmp_path), a_role("critic", leave_it)
    async with fleet_of(*makers, settings=settings) as fleet:
        await fleet.bus.request(start)
        run = await run_that(fleet.bus, start.run_id, is_over)
        orders = fleet[ScriptedRole].orders

    assert run.status is RunStatus.COMPLETED
    assert [(order.step_id, order.attempt) for order in orders] == [("a", 1), ("b", 1)]
    assert orders[1].inputs[0].artifact.artifact_id == artifact_id_of(start.run_id, "a", 1)


async def test_a_run_begins_with_what_its_starter_may_read_alone(tmp_path: Path) -> None:
    settings = settings_for(f"memory://{secrets.token_hex(4)}", tmp_path)
    step = a_step("a").model_copy(update={"produces": "critique"})
    async with fleet_of(FLEET["storage"], an_orchestrator(tmp_path), EchoWorker, settings=settings) as fleet:
        ends: dict[str, list[Run]] = {"anna": [], "mallory": []}
        async with open_artifacts(fleet.bus.acting_as("user.anna"), settings) as artifacts:
            about: PutOptions = {"artifact_type": "brief", "trace": "run_hers", "content_type": "text/markdown"}
            brief = (await artifacts.put(b"# Rain", **about)).ref
        for who in ("anna", "anna", "mallory"):
            start = a_start(step, run_id="run_hers" if not ends["anna"] else None)
            bus = fleet.bus.acting_as(f"user.{who}")
            await bus.request(start.model_copy(update={"inputs": (brief,)}), trace=start.run_id)
            ends[who].append(await run_that(bus, start.run_id, is_over))

    assert [run.status for run in ends["anna"]] == [RunStatus.COMPLETED] * 2
    (refused,) = ends["mallory"]
    assert (refused.status, refused.steps[0].attempt) == (RunStatus.FAILED, 0)
    assert "not yours to read" in refused.reason


async def test_an_old_order_of_an_attempt_that_is_over_is_not_worked_on(tmp_path: Path) -> None:
    settings = settings_for(f"memory://{secrets.token_hex(4)}", tmp_path)
    step = a_step("a").model_copy(update={"produces": "critique"})
    async with fleet_of(FLEET["storage"], an_orchestrator(tmp_path), EchoWorker, settings=settings) as fleet:
        async with open_artifacts(fleet.bus, settings) as artifacts:
            brief = await put_brief(artifacts)
        start = a_start(step).model_copy(update={"inputs": (brief,)})
        await fleet.bus.request(start, trace=start.run_id)
        run = await run_that(fleet.bus, start.run_id, is_over)
        order = ExecuteStep(
            run_id=run.run_id,
            step_id="a",
            attempt=1,
            produces="critique",
            instructions="Do it.",
            inputs=(NamedInput(name="brief", artifact=brief),),
            deadline=utc_now() + timedelta(minutes=5),
        )
        role = fleet[EchoWorker]

        async def carried_out(order: ExecuteStep, age: timedelta) -> Event | None:
            sent = Envelope.model_validate(an_envelope(time=utc_now() - age))
            with MessageContext(sent, EchoWorker.name) as context:
                return await role.execute(order, context)

        # Nobody asks about a fresh one: another delivery of it tells again what it has made.
        assert isinstance(await carried_out(order, timedelta(seconds=1)), StepCompleted)
        assert await carried_out(order, timedelta(minutes=1)) is None
        assert await carried_out(order.model_copy(update={"attempt": 2}), timedelta(minutes=1)) is None
        gone = order.model_copy(update={"run_id": mint("run")})
        assert await carried_out(gone, timedelta(minutes=1)) is None


class SlowEchoWorker(EchoWorker):
    """Works on few orders at a time; each takes its model a while, and each call is counted."""

    def __init__(self, context: WorkerContext, concurrency: int, takes_s: float) -> None:
        super().__init__(context)
        self.concurrency = concurrency
        self.calls = 0
        complete = self._model.complete

        async def count(*args: Any, **options: Any) -> Any:
            self.calls += 1
            await asyncio.sleep(takes_s)
            return await complete(*args, **options)

        self._model.complete = count  # type: ignore[method-assign]  # the model of this worker alone


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("runs", "at_once", "takes_s", "timeout_s"),
    [(20, 2, 0.5, 4), pytest.param(100, 5, 1, 8, marks=pytest.mark.proof)],
)
@pytest.mark.rabbit
async def test_waiting_in_a_queue_costs_no_attempt_and_no_call(
    vhost_url: str, tmp_path: Path, runs: int, at_once: int, takes_s: float, timeout_s: float
) -> None:
    settings = settings_for(vhost_url, tmp_path)
    takes_s, timeout_s = takes_s * PATIENCE, timeout_s * PATIENCE

    def echo(context: WorkerContext) -> SlowEchoWorker:
        return SlowEchoWorker(context, at_once, takes_s)

    echo.name = EchoWorker.name  # type: ignore[attr-defined]  # as a Worker class has one
    step = a_step("a", timeout_s=timeout_s).model_copy(update={"queue_timeout_s": 3600, "produces": "critique"})
    async with fleet_of(FLEET["storage"], an_orchestrator(tmp_path), echo, settings=settings) as fleet:
        async with open_artifacts(fleet.bus, settings) as artifacts:
            brief = await put_brief(artifacts)
        starts = [a_start(step).model_copy(update={"inputs": (brief,)}) for _ in range(runs)]
        for start in starts:
            await fleet.bus.request(start, trace=start.run_id)
        ended = [await run_that(fleet.bus, start.run_id, is_over, deadline_s=200) for start in starts]
        calls = fleet[SlowEchoWorker].calls

    assert {run.status for run in ended} == {RunStatus.COMPLETED}
    assert {step.attempt for run in ended for step in run.steps} == {1}
    assert calls == runs

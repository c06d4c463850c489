"""An article is written to its end whatever is killed meanwhile, and nothing of it is made, or paid for, twice."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus_schema.process import ExecuteStep, StepCompleted, StepPendingStorage
from bus_schema.runs import Run, StepStatus
from bus_schema.storage import ArtifactRegistered
from mindbus.bus.deadletters import DeadLetters
from mindbus.testing.wait import until
from mindbus_fleet.node.installation import RabbitMQMissing, find_rabbitmq
from tests.brokers import do_without
from tests.llm_server import Call
from tests.whole_runs import WholeFleet, WholeRun, inputs_of, whole_fleet_on

BRIEF_FILE = Path("config/briefs/ru.md")
STEPS = ("research", "ideas", "draft", "critique", "edit", "final")
MODEL_TAKES_S = 0.3
OUTAGE_S = 60
# Shorter than the three tries that storage is given.
HICCUP_S = 4
pytestmark = [pytest.mark.chaos, pytest.mark.rabbit]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    calls = tmp_path_factory.mktemp("model") / "calls.jsonl"
    command = [sys.executable, "-m", "tests.llm_server", "--count-file", str(calls), "--delay", str(MODEL_TAKES_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().strip(), calls
        process.terminate()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, model: tuple[str, Path]) -> Iterator[WholeFleet]:
    try:
        find_rabbitmq()
    except RabbitMQMissing as missing:
        do_without(missing)
    with whole_fleet_on(tmp_path_factory.mktemp("fleet"), *model) as fleet:
        yield fleet


async def completed_once(run: WholeRun) -> Run:
    """The run once it is over, with one order, one result, one artifact for each step, made from what the card says."""
    ended = await run.completed()
    manifests = await run.manifests()
    inputs = inputs_of(ended, run.brief)
    heard = await run.heard()

    assert {step: len(found) for step, found in manifests.items()} == dict.fromkeys((None, *STEPS), 1)
    assert [(s.step_id, s.status, s.attempt) for s in ended.steps] == [(s, StepStatus.COMPLETED, 1) for s in STEPS]
    for step in ended.steps:
        (manifest,) = manifests[step.step_id]
        assert step.artifact == manifest.ref
        assert manifest.context
        assert list(manifest.context.input_artifacts) == inputs[step.step_id]
    assert ended.result
    assert await run.lineage(ended.result) == {
        (made, of.artifact.artifact_id) for of in ended.steps if of.artifact for made in inputs[of.step_id]
    }
    orders = {(e.id, e.mbstepid) for e in heard if e.type == ExecuteStep.wire.type}
    endings = {(e.id, e.mbstepid) for e in heard if e.type in (StepCompleted.wire.type, StepPendingStorage.wire.type)}
    assert sorted(str(step) for _, step in orders) == sorted(str(step) for _, step in endings) == sorted(STEPS)
    dead = DeadLetters(run.fleet.amqp_url)
    assert [await dead.look(worker) for worker in ("orchestrator", "storage", "pushkin")] == [[], [], []]
    assert run.buffered() == []
    return ended


def paid_again(run: WholeRun) -> set[Call]:
    again = run.asked_more_than_once()
    assert set(again.values()) <= {2}
    return set(again)


async def test_the_orchestrator_is_killed(fleet: WholeFleet) -> None:
    async with fleet.run(BRIEF_FILE) as run:
        await run.call("draft", "write", "asked")
        fleet.strike("orchestrator", signal.SIGKILL)
        await completed_once(run)

    assert paid_again(run) == set()


async def test_a_role_is_killed_while_a_model_call_is_under_way(fleet: WholeFleet) -> None:
    async with fleet.run(BRIEF_FILE) as run:
        await run.call("draft", "self-critique", "asked")
        fleet.strike("pushkin", signal.SIGKILL)
        under_way = run.calls("asked")[-1]
        await completed_once(run)

    # The draft itself was finished, so it was not written again. On a busy machine the answer may be faster than the
    # signal: then it had reached a checkpoint or not.
    assert paid_again(run) <= {under_way}
    assert paid_again(run) or under_way.digest in {call.digest for call in run.calls("answering")}


@pytest.mark.proof
async def test_a_role_is_killed_right_after_a_model_call(fleet: WholeFleet) -> None:
    async with fleet.run(BRIEF_FILE) as run:
        await run.call("draft", "self-critique", "answered")
        fleet.strike("pushkin", signal.SIGKILL)
        await completed_once(run)

    # Its answer had reached a checkpoint or not, the next call may have been on its way: one of them, nothing before.
    assert len(paid_again(run)) <= 1
    assert "write" not in {call.step for call in paid_again(run)}


@pytest.mark.proof
async def test_a_role_is_killed_when_its_artifact_has_just_been_registered(fleet: WholeFleet) -> None:
    async with fleet.run(BRIEF_FILE) as run, run.bus.subscribe(ArtifactRegistered, trace=run.run_id) as registered:
        async for event in registered:
            if event.step_id == "draft":
                break
        fleet.strike("pushkin", signal.SIGKILL)
        await completed_once(run)

    assert paid_again(run) == set()


@pytest.mark.proof
async def test_storage_is_killed(fleet: WholeFleet) -> None:
    async with fleet.run(BRIEF_FILE) as run:
        await run.call("draft", "self-critique", "answered")
        fleet.end_storage(signal.SIGKILL)
        fleet.start_storage()
        await completed_once(run)

    assert paid_again(run) == set()


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", ["asked", "answered"])
async def test_somebody_is_killed_in_every_step(fleet: WholeFleet, moment: str) -> None:
    async with fleet.run(BRIEF_FILE) as run:
        for task in ("research_report", "idea", "draft", "critique", "edited", "final"):
            await run.call(task, "write", moment)
            fleet.end_storage(signal.SIGKILL)
            fleet.strike("orchestrator", signal.SIGKILL)
            if task in ("draft", "final"):
                fleet.strike("pushkin", signal.SIGKILL)
            fleet.start_storage()
        await completed_once(run)

    # No more than the call that each of its two deaths met.
    assert len(paid_again(run)) <= 2


@pytest.mark.parametrize("outage_s", [0, pytest.param(OUTAGE_S, marks=pytest.mark.proof)])
async def test_storage_is_stopped_while_a_step_is_thought_about(fleet: WholeFleet, outage_s: float) -> None:
    async with fleet.run(BRIEF_FILE) as run, run.bus.subscribe(StepPendingStorage, trace=run.run_id) as events:
        await run.call("draft", "self-critique", "asked")
        fleet.end_storage(signal.SIGTERM)
        stopped_at = time.monotonic()

        pending = await anext(aiter(events))
        await run.step_is("draft", StepStatus.PENDING_STORAGE)
        buffered = run.buffered()
        await until(lambda: time.monotonic() - stopped_at > outage_s, outage_s + 1)
        fleet.start_storage()
        ended = await completed_once(run)

    assert {file.stem for file in buffered} == {pending.artifact.artifact_id}
    assert next(step.artifact for step in ended.steps if step.step_id == "draft") == pending.artifact
    assert paid_again(run) == set()


@pytest.mark.parametrize("outage_s", [HICCUP_S, pytest.param(OUTAGE_S, marks=pytest.mark.proof)])
async def test_a_step_that_begins_without_storage_waits_for_it(fleet: WholeFleet, outage_s: float) -> None:
    async with fleet.run(BRIEF_FILE) as run:
        fleet.strike("pushkin", signal.SIGSTOP)
        await run.step_is("draft", StepStatus.RUNNING)
        fleet.end_storage(signal.SIGKILL)
        stopped_at = time.monotonic()
        fleet.strike("pushkin", signal.SIGCONT)

        await until(lambda: time.monotonic() - stopped_at > outage_s, outage_s + 1)
        fleet.start_storage()
        await completed_once(run)

    assert outage_s < OUTAGE_S or fleet.waits_for_storage("pushkin", run.run_id)
    assert paid_again(run) == set()


async def test_the_broker_is_killed(fleet: WholeFleet) -> None:
    async with fleet.run(BRIEF_FILE) as run:
        await run.call("draft", "self-critique", "asked")
        fleet.kill_broker()
        await completed_once(run)

    # Whoever was thinking went on: its order comes again, and finds the work still being done.
    assert paid_again(run) == set()

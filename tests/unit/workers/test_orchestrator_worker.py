"""The orchestrator's handlers on a real database, by a clock that stands still."""

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.processes.cards import parse_card
from bus_schema.artifacts import AIContext
from bus_schema.data import ClearData, DeleteUser
from bus_schema.envelope import Kind
from bus_schema.ids import mint
from bus_schema.messages import Command, Event
from bus_schema.model_calls import CallUsage, ModelCalled
from bus_schema.notification import NotificationGenerated
from bus_schema.process import (
    ArtifactMissing,
    CancelProcess,
    ExecuteStep,
    GetProcess,
    ListProcesses,
    ProcessCancelled,
    ProcessCompleted,
    ProcessFailed,
    ProcessStarted,
    Started,
    StartProcess,
    StepCompleted,
    StepEvent,
    StepFailed,
    StepPendingStorage,
    StepStarted,
)
from bus_schema.replies import Code
from bus_schema.run_control import (
    ApprovalRequested,
    ApproveStep,
    GetCosts,
    OutputReplaced,
    PauseProcess,
    ProcessPaused,
    ReplaceOutput,
    RerunProcess,
    ResumeProcess,
    RetryProcess,
)
from bus_schema.runs import Run, RunStatus, StepStatus
from config.settings import FleetSettings
from mindbus import Rejected
from mindbus.bus.transport import Outgoing
from mindbus.sql.database import Database
from mindbus.testing import DeliveryResult, deliver, run_task
from tests.clocks import NOON, Clock
from tests.fleets import Fleet, fleet_of, settings_for
from tests.postgres import DatabaseOf
from tests.process_kit import (
    ROLES,
    ScriptedStorage,
    a_start,
    a_step,
    artifact_of,
    buffered,
    claimed,
    completed,
    failed,
    manifest_of,
    registered,
)
from workers.orchestrator import OrchestratorWorker
from workers.run_control import OrchestratorRules

ANNA = "user.anna"


class Desk:
    """Hands the orchestrator messages and the time, keeps what it last published and sent."""

    def __init__(self, worker: OrchestratorWorker, clock: Clock, fleet: Fleet) -> None:
        self.worker, self.clock = worker, clock
        self.bus = fleet.bus.acting_as("svc.orchestrator")
        self.storage = fleet[ScriptedStorage]
        self.last: DeliveryResult[Any]

    async def hear(self, message: Command[Any] | Event, by: str | None = None, hops: int = 0) -> Any:
        """The result of a command, or the messages that an event caused; raises what the handler raises.

        By default from Anna, the ending of a step from its role.
        """
        by = by or ("agent.critic.1" if isinstance(message, StepEvent) else ANNA)
        self.last = await deliver(self.worker, message, by=by, mbhops=hops)
        if self.last.error is not None:
            raise self.last.error
        return self.last.result if isinstance(message, Command) else self.said

    async def tick(self, method: str, after_s: float = 0) -> None:
        """Let the time pass and the clockwork run once."""
        self.clock.advance(seconds=after_s)
        self.last = await run_task(self.worker, method)

    async def begun(self, *steps: Any) -> StartProcess:
        """A run whose first steps have been sent."""
        start = a_start(*steps)
        await self.hear(start)
        await self.tick("start_runs")
        return start

    async def run(self, run_id: str) -> Run:
        run = await self.hear(GetProcess(run_id=run_id))
        assert isinstance(run, Run)
        return run

    @property
    def said(self) -> list[Outgoing]:
        return [outgoing for outgoing in self.last.outgoing if outgoing.envelope.mbkind is not Kind.REPLY]

    @property
    def orders(self) -> list[ExecuteStep]:
        return [command for command in self.last.sent if isinstance(command, ExecuteStep)]

    @property
    def told(self) -> list[type[Event]]:
        return [type(event) for event in self.last.published]


@pytest.fixture
def rules() -> OrchestratorRules:
    return OrchestratorRules(timedelta(0))


@pytest.fixture
async def desk(tmp_path: Path, database_of: DatabaseOf, rules: OrchestratorRules) -> AsyncIterator[Desk]:
    settings: FleetSettings = settings_for(f"memory://{secrets.token_hex(4)}", tmp_path)
    clock = Clock()
    async with fleet_of(ScriptedStorage, settings=settings) as fleet:
        database = Database(database_of("orchestrator"), "orchestrator")
        worker = OrchestratorWorker(database, fleet.bus.acting_as("svc.orchestrator"), ROLES, clock, rules)
        await worker.start()
        yield Desk(worker, clock, fleet)
        await worker.stop()


async def refusal(desk: Desk, command: Command[Any], by: str = ANNA) -> tuple[Code, str]:
    with pytest.raises(Rejected) as no:
        await desk.hear(command, by)
    return no.value.code, str(no.value)


async def test_a_start_sends_nothing_until_storage_has_confirmed_the_members(desk: Desk) -> None:
    start = a_start(a_step("a"))

    assert await desk.hear(start) == Started(run_id=start.run_id)
    assert (await desk.run(start.run_id)).status is RunStatus.STARTING
    assert desk.storage.members == {}

    await desk.tick("start_runs")
    assert desk.storage.members == {start.run_id: ("agent.critic", "svc.orchestrator", ANNA)}
    assert [(order.step_id, order.attempt) for order in desk.orders] == [("a", 1)]
    assert desk.told == [ProcessStarted, StepStarted]


@pytest.mark.parametrize("retention", [None, "90d"])
async def test_storage_hears_from_the_card_how_long_a_run_is_kept(desk: Desk, retention: str | None) -> None:
    start = a_start(a_step("a"))
    assert start.card is not None
    start = start.model_copy(update={"card": start.card.model_copy(update={"retention": retention})})

    await desk.hear(start)
    await desk.tick("start_runs")

    assert desk.storage.retention == {start.run_id: retention}
    assert (await desk.run(start.run_id)).retention == retention


async def test_an_order_carries_run_step_and_attempt_in_its_envelope(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))

    (order,) = (said for said in desk.said if said.envelope.mbkind is Kind.COMMAND)
    assert order.exchange == "mb.cmd.critic"
    assert (order.envelope.mbstepid, order.envelope.mbattempt) == ("a", 1)
    assert {said.envelope.mbtraceid for said in desk.said} == {start.run_id}


async def test_a_start_that_is_repeated_is_the_same_start(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))

    assert await desk.hear(start) == Started(run_id=start.run_id)
    await desk.tick("start_runs")
    assert desk.said == []


async def test_a_run_id_is_good_for_one_start(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))
    other = start.model_copy(update={"params": {"длина": "коротко"}})
    reason = f"{start.run_id} was started otherwise already; mint another run id"

    assert await refusal(desk, other) == (Code.CONFLICT, reason)
    assert await refusal(desk, start, by="user.boris") == (Code.CONFLICT, reason)


async def test_a_refused_start_leaves_nothing_behind(desk: Desk) -> None:
    start = a_start(a_step("a", role="poet"))

    assert (await refusal(desk, start))[0] is Code.INVALID
    assert await refusal(desk, GetProcess(run_id=start.run_id)) == (Code.NOT_FOUND, f"there is no run {start.run_id}")


async def test_members_that_storage_refuses_fail_the_run(desk: Desk) -> None:
    desk.storage.refuses = True
    start = await desk.begun(a_step("a"))

    assert desk.told == [ProcessFailed]
    run = await desk.run(start.run_id)
    assert (run.status, run.reason) == (
        RunStatus.FAILED,
        "storage refuses the run's members: unauthorized: not for you",
    )


async def test_a_result_brings_the_next_order(desk: Desk) -> None:
    await desk.begun(a_step("a"), a_step("b", "a"))

    await desk.hear(completed(desk.orders[0]), by="agent.critic.1")

    assert [order.step_id for order in desk.orders] == ["b"]
    await desk.hear(completed(desk.orders[0]), by="agent.critic.1")
    assert desk.told == [ProcessCompleted]


async def test_a_step_whose_artifact_storage_does_not_have_has_failed(desk: Desk) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))

    await desk.hear(claimed(desk.orders[0]))

    step = (await desk.run(start.run_id)).steps[0]
    assert (desk.orders, step.status, step.artifact) == ([], StepStatus.PENDING, None)
    assert step.reason.startswith("storage has no art_")
    await desk.tick("check_deadlines", after_s=60)
    assert [(order.step_id, order.attempt) for order in desk.orders] == [("a", 2)]


@pytest.mark.parametrize(
    "changes", [{"trace_id": "run_of_others"}, {"checksum": f"sha256:{'f' * 64}"}, {"step_id": "b"}]
)
async def test_an_artifact_of_another_run_or_of_other_bytes_is_not_the_result_of_a_step(
    desk: Desk, changes: dict[str, str]
) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))
    event = claimed(desk.orders[0])
    manifest = manifest_of(event.artifact, event.run_id)
    desk.storage.artifacts[event.artifact.artifact_id] = manifest.model_copy(update=changes)

    await desk.hear(event)

    step = (await desk.run(start.run_id)).steps[0]
    assert (desk.orders, step.status) == ([], StepStatus.PENDING)
    assert step.reason.endswith("is not the result of this step")


async def test_a_step_that_completes_while_storage_is_away_goes_on_when_it_is_back(desk: Desk) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))
    event = completed(desk.orders[0])
    desk.storage.is_away = True

    await desk.hear(event)
    assert (await desk.run(start.run_id)).steps[0].status is StepStatus.PENDING_STORAGE

    desk.storage.is_away = False
    await desk.tick("find_artifacts")
    assert [order.step_id for order in desk.orders] == ["b"]


async def test_each_step_begins_a_new_story(desk: Desk) -> None:
    await desk.begun(a_step("a"))

    await desk.hear(completed(desk.orders[0]), by="agent.critic.1", hops=15)

    assert {said.envelope.mbhops for said in desk.said} == {0}


async def test_events_of_unknown_runs_are_passed_over(desk: Desk) -> None:
    order = ExecuteStep(
        run_id="run_of_others",
        step_id="a",
        attempt=1,
        produces="draft",
        instructions="",
        inputs=(),
        deadline=desk.clock(),
    )

    for event in (completed(order), failed(order), buffered(order)):
        assert list(await desk.hear(event)) == []
    for trace in ("run_of_others", "conv_anna"):
        assert list(await desk.hear(registered(artifact_of("run_x", "a", 1), trace))) == []


async def test_an_attempt_without_a_result_is_made_again_by_the_clock(desk: Desk) -> None:
    start = await desk.begun(a_step("a", timeout_s=60))
    await desk.tick("check_deadlines", after_s=59)
    assert desk.said == []

    await desk.tick("check_deadlines", after_s=1)
    assert desk.told == [StepFailed]
    await desk.tick("check_deadlines", after_s=1)
    assert [order.attempt for order in desk.orders] == [2]

    late = completed(desk.orders[0], attempt=1)
    assert list(await desk.hear(late)) == []
    assert (await desk.run(start.run_id)).steps[0].status is StepStatus.RUNNING


async def test_a_returning_orchestrator_hears_what_it_missed_before_it_calls_anything_late(
    desk: Desk, database_of: DatabaseOf
) -> None:
    await desk.begun(a_step("a", timeout_s=60))
    order = desk.orders[0]
    desk.clock.advance(seconds=3600)
    database = Database(database_of("orchestrator"), "orchestrator")
    desk.worker = OrchestratorWorker(database, desk.bus, ROLES, desk.clock)
    await desk.worker.start()

    await desk.tick("check_deadlines", after_s=4)
    assert desk.said == []
    await desk.hear(completed(order))
    assert desk.told == [ProcessCompleted]
    await desk.worker.stop()


async def test_an_artifact_whose_event_was_missed_is_looked_for(desk: Desk) -> None:
    await desk.begun(a_step("a"), a_step("b", "a"))
    event = buffered(desk.orders[0])
    await desk.hear(event)
    await desk.tick("find_artifacts")
    assert desk.said == []

    desk.storage.artifacts[event.artifact.artifact_id] = manifest_of(event.artifact, event.run_id)
    await desk.tick("find_artifacts")

    assert [order.step_id for order in desk.orders] == ["b"]


async def test_other_bytes_under_the_awaited_id_do_not_end_the_wait(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))
    event = buffered(desk.orders[0])
    await desk.hear(event)

    other = event.artifact.model_copy(update={"sha256": "f" * 64})
    await desk.hear(registered(other, start.run_id))
    await desk.hear(registered(event.artifact, "run_of_others"))
    assert (await desk.run(start.run_id)).steps[0].status is StepStatus.PENDING_STORAGE

    await desk.hear(registered(event.artifact, start.run_id))
    assert desk.told == [ProcessCompleted]


async def test_a_critical_artifact_that_never_comes_is_an_alert_and_what_comes_late_is_used_by_the_retry(
    desk: Desk,
) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))
    late = buffered(desk.orders[0])
    await desk.hear(late)

    await desk.tick("check_deadlines", after_s=900)
    assert desk.told == [ArtifactMissing, ProcessFailed]
    await desk.tick("check_deadlines", after_s=900)
    assert desk.told == []

    await desk.hear(registered(late.artifact, start.run_id))
    await desk.hear(RetryProcess(run_id=start.run_id))
    assert [order.step_id for order in desk.orders] == ["b"]


async def test_a_paused_run_is_left_alone_by_the_clock(desk: Desk) -> None:
    start = await desk.begun(a_step("a", timeout_s=60))

    paused = await desk.hear(PauseProcess(run_id=start.run_id, reason="обед"))
    assert (paused.status, paused.reason) == (RunStatus.PAUSED, "обед")
    await desk.tick("check_deadlines", after_s=3600)
    assert desk.said == []

    assert (await desk.hear(ResumeProcess(run_id=start.run_id))).status is RunStatus.RUNNING
    await desk.tick("check_deadlines")
    assert desk.told == [StepFailed]


@pytest.mark.parametrize("rules", [OrchestratorRules(timedelta(0), quota_tokens_per_day=100)])
async def test_runs_wait_for_tomorrow_once_the_tokens_of_the_fleet_are_spent(desk: Desk) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))
    (first,) = desk.orders
    cost = CallUsage(model_name="small", prompt_tokens=60)
    for user_id in ("boris", None):
        called = ModelCalled(call_id=mint("art"), user_id=user_id, caller="svc.critic", cost=cost, is_kept=False)
        await desk.hear(called, by="svc.storage")

    await desk.hear(completed(first))
    waiting = await desk.run(start.run_id)
    assert (waiting.status, waiting.reason) == (RunStatus.PAUSED, "the tokens of the fleet for today are used up")
    again = await desk.hear(ResumeProcess(run_id=start.run_id), by="user.local")
    assert again.status is RunStatus.PAUSED, "for operators as well"

    desk.clock.advance(seconds=86_400)
    assert (await desk.hear(ResumeProcess(run_id=start.run_id))).status is RunStatus.RUNNING
    assert [order.step_id for order in desk.orders] == ["b"]


async def test_a_step_that_meets_the_end_of_the_tokens_is_made_once_there_are_some_again(desk: Desk) -> None:
    start, told = await desk.begun(a_step("a"), a_step("b")), []
    for order in desk.orders:
        refused = failed(order).model_copy(update={"retryable": False, "quota_spent": True})
        for _ in range(2):
            await desk.hear(refused)
            told += desk.told
    waiting = await desk.run(start.run_id)
    assert (waiting.status, waiting.reason) == (RunStatus.PAUSED, "the tokens of the fleet for today are used up")
    assert [step.status for step in waiting.steps] == [StepStatus.PENDING] * 2
    assert told.count(ProcessPaused) == 1

    await desk.hear(ResumeProcess(run_id=start.run_id))
    assert [(order.step_id, order.attempt) for order in desk.orders] == [("a", 2), ("b", 2)]


async def test_a_retry_makes_a_new_version_and_the_row_says_so(desk: Desk) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))
    await desk.hear(completed(desk.orders[0]))
    await desk.hear(completed(desk.orders[0]))

    await desk.hear(RetryProcess(run_id=start.run_id, from_step="b"))

    (order,) = desk.orders
    before = artifact_of(start.run_id, "b", 1)
    assert (order.attempt, order.round, order.supersedes) == (2, 2, before)
    step = (await desk.run(start.run_id)).steps[1]
    assert (step.round, step.attempts_before, step.before, step.artifact) == (2, 1, before, None)
    assert (await refusal(desk, RetryProcess(run_id=start.run_id)))[0] is Code.CONFLICT


async def test_the_cost_of_runs_is_for_those_who_may_see_them(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))
    made = AIContext(model_calls=1, prompt_tokens=10, completion_tokens=5)
    await desk.hear(completed(desk.orders[0]).model_copy(update={"context": made}))

    for query in (GetCosts(run_id=start.run_id, by="step"), GetCosts(by="user"), GetCosts(since=NOON)):
        costs = await desk.hear(query)
        assert (costs.total.tokens, costs.total.price, costs.is_all) == (15, None, True)
    assert (await desk.hear(GetCosts(by="user"), by="user.local")).lines[0].key == ANNA
    assert (await desk.hear(GetCosts(), by="user.boris")).lines == ()
    assert (await desk.hear(GetCosts(since=NOON + timedelta(days=9999)))).lines == ()
    assert (await refusal(desk, GetCosts(run_id=start.run_id), by="user.boris"))[0] is Code.NOT_FOUND


async def test_a_run_is_made_again_with_other_parameters(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))
    again = RerunProcess(run_id="run_again", of_run=start.run_id, params={"тон": "сухой"})

    assert await desk.hear(again) == Started(run_id="run_again")
    await desk.tick("start_runs")

    (order,) = desk.orders
    assert (order.run_id, order.params, order.inputs[0].artifact) == ("run_again", {"тон": "сухой"}, start.inputs[0])
    assert (await desk.run("run_again")).card_name == "card"


async def test_an_edited_artifact_takes_the_place_of_an_output(desk: Desk) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))
    await desk.hear(completed(desk.orders[0]))
    edited = artifact_of(start.run_id, "edited", 1)
    replace = ReplaceOutput(run_id=start.run_id, step_id="a", artifact=edited)
    assert (await refusal(desk, replace))[0] is Code.INVALID, "storage has no such artifact"
    desk.storage.artifacts[edited.artifact_id] = manifest_of(edited, start.run_id)

    run = await desk.hear(replace)

    assert desk.told == [OutputReplaced, StepStarted]
    assert (run.steps[0].artifact, run.steps[0].by) == (edited, ANNA)
    assert [(order.step_id, order.attempt, order.inputs[0].artifact) for order in desk.orders] == [("b", 2, edited)]


@pytest.mark.parametrize("command", [PauseProcess, ResumeProcess, RetryProcess])
async def test_a_run_is_steered_by_its_starter_and_operators_alone(desk: Desk, command: type[Command[Any]]) -> None:
    start = await desk.begun(a_step("a"))
    request = command.model_validate({"run_id": start.run_id})

    assert await refusal(desk, request, by="user.boris") == (Code.NOT_FOUND, f"there is no run {start.run_id}")
    assert (await refusal(desk, request, by="agent.critic.1"))[0] is Code.UNAUTHORIZED
    await desk.hear(PauseProcess(run_id=start.run_id), by="user.local")
    assert (await desk.run(start.run_id)).status is RunStatus.PAUSED


async def test_only_a_run_that_is_not_over_can_be_cancelled(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))
    order = desk.orders[0]

    run = await desk.hear(CancelProcess(run_id=start.run_id, reason="передумали"))
    assert run.status is RunStatus.CANCELLED
    assert desk.told == [ProcessCancelled]
    assert await desk.hear(CancelProcess(run_id=start.run_id)) == run
    assert desk.said == []
    assert list(await desk.hear(completed(order))) == []

    done = await desk.begun(a_step("a"))
    await desk.hear(completed(desk.orders[0]))
    assert await refusal(desk, CancelProcess(run_id=done.run_id)) == (
        Code.CONFLICT,
        f"{done.run_id} is completed already",
    )
    assert await refusal(desk, CancelProcess(run_id="run_none")) == (Code.NOT_FOUND, "there is no run run_none")


CARD = """\
name: everything
result: end
steps:
  - {id: plan, role: critic, produces: draft, instructions: x}
  - {id: read, role: critic, produces: draft, instructions: x, inputs: [plan], for_each: plan.items}
  - id: check
    role: critic
    produces: draft
    instructions: x
    inputs: [read]
    repeat: {back_to: plan, until: check.satisfied, max_rounds: 2}
  - {id: rest, wait: 10m, inputs: [check]}
  - {id: ask, approve: Well?, inputs: [check, rest]}
  - {id: end, role: critic, produces: draft, instructions: x, inputs: [check, ask]}
"""


async def test_rows_of_every_construct_are_kept(desk: Desk) -> None:
    card = parse_card(CARD.encode(), "card.yaml", ROLES)
    start = a_start(a_step("a")).model_copy(update={"card": card})
    await desk.hear(start)
    await desk.tick("start_runs")
    made = AIContext(values={"items": ("один", "два"), "satisfied": False})
    for satisfied in (False, True):
        made = AIContext(values={**made.values, "satisfied": satisfied})
        for _ in range(3):
            for order in desk.orders:
                await desk.hear(completed(order).model_copy(update={"context": made}))
    await desk.tick("check_deadlines", after_s=599)
    assert desk.said == []

    await desk.tick("check_deadlines", after_s=1)
    assert desk.told == [ApprovalRequested, NotificationGenerated]
    assert (await refusal(desk, ApproveStep(run_id=start.run_id, step_id="ask"), by="agent.critic.1"))[0] is (
        Code.UNAUTHORIZED
    )
    await desk.hear(ApproveStep(run_id=start.run_id, step_id="ask", note="да"))
    await desk.hear(completed(desk.orders[0]))

    run = await desk.run(start.run_id)
    assert run.status is RunStatus.COMPLETED
    told = {step.step_id: (step.round, step.item, step.approved, step.note) for step in run.steps}
    assert told == {
        **dict.fromkeys(("plan", "read", "check"), (2, "", None, "")),
        **dict.fromkeys(("rest", "end"), (1, "", None, "")),
        "ask": (1, "", True, "да"),
        **{f"read-{place}": (1, item, None, "") for place, item in ((1, "один"), (2, "два"))},
        **{f"read-2-{place}": (2, item, None, "") for place, item in ((1, "один"), (2, "два"))},
    }


async def test_runs_are_listed_page_by_page(desk: Desk) -> None:
    starts = []
    for _ in range(3):
        starts.append(await desk.begun(a_step("a")))
        desk.clock.advance(seconds=1)

    first = await desk.hear(ListProcesses(limit=2))
    second = await desk.hear(ListProcesses(limit=2, cursor=first.next_cursor))

    assert [run.run_id for run in (*first.items, *second.items)] == [start.run_id for start in reversed(starts)]
    assert second.next_cursor is None
    assert (await refusal(desk, ListProcesses(cursor="x")))[0] is Code.INVALID


@pytest.mark.parametrize("kind", [StepCompleted, StepFailed, StepPendingStorage])
async def test_an_event_that_is_heard_twice_changes_nothing_the_second_time(desk: Desk, kind: type[Event]) -> None:
    start = await desk.begun(a_step("a"), a_step("b", "a"))
    order = desk.orders[0]
    events: dict[type[Event], Event] = {
        StepCompleted: completed(order),
        StepFailed: failed(order),
        StepPendingStorage: buffered(order),
    }
    await desk.hear(events[kind])
    before = await desk.run(start.run_id)

    assert list(await desk.hear(events[kind])) == []
    assert await desk.run(start.run_id) == before


async def test_a_cleared_orchestrator_knows_no_run_and_nobody_works_on_one(desk: Desk) -> None:
    await desk.begun(a_step("one"))
    (order,) = desk.orders
    await desk.begun(a_step("one"))

    removed = await desk.hear(ClearData(confirm=True), by="user.local")

    assert removed.counts == {"runs": 2}
    assert desk.told == [ProcessCancelled, ProcessCancelled]
    assert (await desk.hear(ListProcesses())).items == ()
    await desk.hear(completed(order))
    assert desk.said == []
    await desk.tick("check_deadlines", after_s=10_000)
    assert desk.said == []


async def test_with_a_user_go_the_runs_that_they_started_alone(desk: Desk) -> None:
    await desk.begun(a_step("one"))
    his = a_start(a_step("one"))
    await desk.hear(his, by="user.boris")

    removed = await desk.hear(DeleteUser(user_id="anna"), by="user.local")

    assert removed.counts == {"runs": 1}
    listed = await desk.hear(ListProcesses(), by="user.local")
    assert [run.run_id for run in listed.items] == [his.run_id]


async def test_a_run_is_seen_and_cancelled_by_its_starter_its_roles_and_operators(desk: Desk) -> None:
    start = await desk.begun(a_step("a"))

    for stranger in ("user.boris", "agent.intruder.1"):
        assert (await desk.hear(ListProcesses(), by=stranger)).items == ()
        for asked in (GetProcess(run_id=start.run_id), CancelProcess(run_id=start.run_id)):
            assert await refusal(desk, asked, by=stranger) == (Code.NOT_FOUND, f"there is no run {start.run_id}")
    for known in (ANNA, "user.local", "agent.critic.1"):
        assert (await desk.hear(GetProcess(run_id=start.run_id), by=known)).run_id == start.run_id
    assert (await desk.hear(CancelProcess(run_id=start.run_id))).status is RunStatus.CANCELLED


@pytest.mark.parametrize("command", [ClearData(confirm=True), DeleteUser(user_id="anna")])
async def test_no_agent_has_runs_removed(desk: Desk, command: Command[Any]) -> None:
    await desk.begun(a_step("one"))

    with pytest.raises(Rejected) as refused:
        await desk.hear(command, by="agent.critic.1")

    assert refused.value.code is Code.UNAUTHORIZED


async def test_only_its_role_ends_a_step(desk: Desk) -> None:
    start = await desk.begun(a_step("one"))
    forged = completed(desk.orders[0])

    for by in ("agent.intruder.1", "svc.tracker", ANNA, "user.critic"):
        await desk.hear(forged, by=by)
        assert (await desk.run(start.run_id)).steps[0].status is not StepStatus.COMPLETED

    await desk.hear(forged, by="agent.critic.7")
    assert (await desk.run(start.run_id)).steps[0].status is StepStatus.COMPLETED

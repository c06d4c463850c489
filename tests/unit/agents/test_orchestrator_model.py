"""Any card, any order of happenings, repeated, late, made up: what always holds of a run."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from agents.processes.run_events import (
    OVER,
    ArtifactFound,
    CancelRequested,
    ControlRequest,
    MembersConfirmed,
    OutputGiven,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    RunEvent,
    TimePassed,
)
from agents.processes.saga import advance, open_run
from bus_schema.artifacts import AIContext, ArtifactRef
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.messages import Event
from bus_schema.process import (
    ArtifactMissing,
    ExecuteStep,
    ProcessCancelled,
    ProcessCompleted,
    ProcessFailed,
    ProcessStarted,
    StartProcess,
    StepCompleted,
    StepFailed,
    StepPendingStorage,
)
from bus_schema.runs import Run, RunStatus, StepStatus
from mindbus.errors import Rejected

RUN = "run_1"
BRIEF_REF = ArtifactRef(artifact_id="art_brief", version=1, sha256="b" * 64, size_bytes=1, content_type="text/plain")
SETTLED = {StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.PENDING_STORAGE}
MADE = {StepStatus.COMPLETED, StepStatus.PENDING_STORAGE}


@st.composite
def cards(draw: st.DrawFn) -> Card:
    ids = [f"s{number}" for number in range(draw(st.integers(1, 6)))]
    result = draw(st.sampled_from(ids))
    steps = []
    for number, step_id in enumerate(ids):
        inputs = draw(st.lists(st.sampled_from([BRIEF, *ids[:number]]), min_size=1, unique=True))
        steps.append(
            CardStep(
                id=step_id,
                role=draw(st.sampled_from(["critic", "editor"])),
                instructions="x",
                inputs=tuple(inputs),
                produces="draft",
                critical=step_id == result or draw(st.booleans()),
                timeout_s=draw(st.sampled_from([10, 60])),
                queue_timeout_s=0,
                attempts=draw(st.integers(1, 3)),
            )
        )
    return Card(name="any", steps=tuple(draw(st.permutations(steps))), result=result, artifact_deadline_s=100)


class AnyRun(RuleBasedStateMachine):
    @initialize(card=cards())
    def open(self, card: Card) -> None:
        self.card = card
        self.plans = {plan.id: plan for plan in card.steps}
        self.now = datetime(2025, 6, 1, tzinfo=UTC)
        self.run: Run = open_run(StartProcess(run_id=RUN, card=card, inputs=(BRIEF_REF,)), card, "user.anna", self.now)
        self.orders: dict[tuple[str, int], ExecuteStep] = {}
        self.told: list[Event] = []
        self.results: dict[str, ArtifactRef] = {}
        self.history: list[RunEvent] = [MembersConfirmed()]
        self.made = 0

    @rule()
    def confirm(self) -> None:
        self.take(MembersConfirmed())

    @precondition(lambda self: self.orders)
    @rule(data=st.data(), how=st.sampled_from(["completed", "pending", "failed", "failed for good"]))
    def end_an_attempt(self, data: st.DataObject, how: str) -> None:
        step, attempt = data.draw(st.sampled_from(sorted(self.orders)))
        self.take(self.ending(step, attempt, how))

    @rule(data=st.data())
    def repeat_what_happened(self, data: st.DataObject) -> None:
        self.take(data.draw(st.sampled_from(self.history)))

    @rule(step=st.sampled_from(["s0", "s5", "zz"]), attempt=st.integers(1, 4))
    def make_up_a_result(self, step: str, attempt: int) -> None:
        if (step, attempt) not in self.orders:
            before = self.run
            self.take(self.ending(step, attempt, "completed"))
            assert self.run == before

    @rule(data=st.data())
    def register_what_lies_in_a_buffer(self, data: st.DataObject) -> None:
        waiting = [step.artifact for step in self.run.steps if step.status is StepStatus.PENDING_STORAGE]
        self.take(ArtifactFound(data.draw(st.sampled_from([*waiting, BRIEF_REF])) or BRIEF_REF))

    @rule(seconds=st.sampled_from([0, 1, 5, 59, 60, 200]))
    def let_time_pass(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self.take(TimePassed())

    @rule(dice=st.integers(0, 9))
    def cancel_now_and_then(self, dice: int) -> None:
        if dice == 0:
            self.take(CancelRequested("", "user.anna"))

    @rule(data=st.data())
    def steer_now_and_then(self, data: st.DataObject) -> None:
        step = data.draw(st.sampled_from(sorted(self.plans)))
        self.made += 1
        given = BRIEF_REF.model_copy(update={"artifact_id": f"art_by_hand_{self.made}"})
        requests: list[ControlRequest] = [PauseRequested("", "user.anna"), ResumeRequested("user.anna")]
        requests += [RetryRequested(each, "user.anna") for each in (None, step)]
        requests.append(OutputGiven(step, given, "user.anna"))
        with suppress(Rejected):
            self.steer(data.draw(st.sampled_from(requests)))

    def steer(self, request: ControlRequest) -> None:
        before = self.run
        moved = advance(self.card, before, request, self.now)
        self.run = moved.run
        if not isinstance(request, PauseRequested | ResumeRequested):
            # The story begins anew, but for attempts that were sent and outputs that are kept.
            kept = {step.step_id for step in self.run.steps if step.status in MADE}
            self.results = {step: result for step, result in self.results.items() if step in kept}
            if isinstance(request, OutputGiven):
                self.results[request.step_id] = request.artifact
            self.told = [told for told in self.told if isinstance(told, ProcessStarted)]
        self.told += moved.events
        self.holds_of_orders(before, moved.orders)
        self.holds_of_results()
        self.holds_of_the_end(self.run)

    def ending(self, step: str, attempt: int, how: str) -> StepCompleted | StepPendingStorage | StepFailed:
        if how.startswith("failed"):
            return StepFailed(run_id=RUN, step_id=step, attempt=attempt, retryable=how == "failed", reason="x")
        self.made += 1
        artifact = BRIEF_REF.model_copy(update={"artifact_id": f"art_{step}_{attempt}_{self.made}"})
        kind = StepCompleted if how == "completed" else StepPendingStorage
        return kind(run_id=RUN, step_id=step, attempt=attempt, artifact=artifact, context=AIContext())

    def take(self, happened: RunEvent) -> None:
        before = self.run
        moved = advance(self.card, before, happened, self.now)
        self.history.append(happened)
        self.run = moved.run
        self.told += moved.events

        self.holds_of_orders(before, moved.orders)
        self.holds_of_results()
        self.holds_of_the_end(before)
        again = advance(self.card, self.run, happened, self.now)
        assert (again.run, again.orders, again.events) == (self.run, (), ()), "what comes twice counts once"

    def holds_of_orders(self, before: Run, orders: tuple[ExecuteStep, ...]) -> None:
        assert not (orders and self.run.status is not RunStatus.RUNNING), "only a run that goes on sends anything"
        steps = {step.step_id: step for step in self.run.steps}
        for order in orders:
            plan = self.plans[order.step_id]
            assert (order.step_id, order.attempt) not in self.orders, "an attempt goes out once"
            assert order.attempt == 1 or (order.step_id, order.attempt - 1) in self.orders, "attempts have no gaps"
            step = steps[order.step_id]
            assert order.attempt - step.attempts_before <= plan.attempts, "attempts are limited"
            assert (order.round, order.supersedes) == (step.round, step.before)
            assert order.step_id not in self.results, "no step is repeated after its result"
            assert order.deadline == self.now + timedelta(seconds=plan.timeout_s)
            assert order.inputs, "nobody works from nothing"
            for name in set(plan.inputs) - {BRIEF}:
                wanted = {StepStatus.COMPLETED} if steps[name].critical else SETTLED
                assert steps[name].status in wanted, "a step waits for its inputs"
            for given in order.inputs:
                if given.name != BRIEF:
                    assert given.artifact == steps[given.name].artifact
                    assert steps[given.name].status is StepStatus.COMPLETED, "inputs are registered artifacts"
            self.orders[order.step_id, order.attempt] = order

    def holds_of_results(self) -> None:
        for step in self.run.steps:
            if step.status in MADE and step.artifact is not None:
                assert self.results.setdefault(step.step_id, step.artifact) == step.artifact, "one result a step"

    def holds_of_the_end(self, before: Run) -> None:
        if before.status in OVER:
            assert self.run.status is before.status, "the end is the end"
        ends = [told for told in self.told if isinstance(told, ProcessCompleted | ProcessFailed | ProcessCancelled)]
        assert len(ends) == (self.run.status in OVER), "the end is told once"
        assert sum(isinstance(told, ProcessStarted) for told in self.told) <= 1
        alerts = [told.step_id for told in self.told if isinstance(told, ArtifactMissing)]
        assert len(alerts) == len(set(alerts)), "an alert is raised once"
        assert all(self.plans[step_id].critical for step_id in alerts), "only critical artifacts are missed"
        if self.run.status is RunStatus.COMPLETED:
            assert self.run.result is not None
            assert all(step.status is StepStatus.COMPLETED for step in self.run.steps if step.critical)
        if self.run.status in OVER:
            assert not any(step.status in {StepStatus.PENDING, StepStatus.RUNNING} for step in self.run.steps)

    def teardown(self) -> None:
        if not hasattr(self, "run"):
            return
        self.take(MembersConfirmed())
        for _ in range(100):
            if self.run.status in OVER:
                return
            if self.run.status is RunStatus.PAUSED:
                self.steer(ResumeRequested("user.anna"))
            for step in self.run.steps:
                if step.status is StepStatus.RUNNING:
                    self.take(self.ending(step.step_id, step.attempt, "completed"))
                elif step.status is StepStatus.PENDING_STORAGE and step.artifact is not None:
                    self.take(ArtifactFound(step.artifact))
            self.now += timedelta(seconds=61)
            self.take(TimePassed())
        raise AssertionError(f"the run does not end: {self.run}")


AnyRun.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestAnyRun = AnyRun.TestCase

"""The rules of a run, told one by one."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from agents.processes.run_events import (
    ArtifactFound,
    CancelRequested,
    ClockHeld,
    MembersConfirmed,
    MembersRefused,
    OrdersLost,
    OutputGiven,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    RunEvent,
    TimePassed,
)
from agents.processes.saga import advance, members_of, open_run
from agents.processes.steps import pause_after
from bus_schema.artifacts import AIContext, ArtifactRef
from bus_schema.cards import Card, CardStep
from bus_schema.messages import Event
from bus_schema.process import (
    ArtifactMissing,
    ExecuteStep,
    ProcessCancelled,
    ProcessCompleted,
    ProcessFailed,
    ProcessStarted,
    StartProcess,
    StepBegun,
    StepCompleted,
    StepFailed,
    StepPendingStorage,
    StepStarted,
)
from bus_schema.run_control import OutputReplaced, ProcessPaused, ProcessResumed, ProcessRetried
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from mindbus.errors import Rejected

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
RUN = "run_1"
ANNA = "user.anna"


def an_artifact(name: str = "a", sha: str = "0") -> ArtifactRef:
    return ArtifactRef(
        artifact_id=f"art_{name}", version=1, sha256=sha * 64, size_bytes=3, content_type="text/markdown"
    )


def a_step(name: str, *inputs: str, critical: bool = True, attempts: int = 2) -> CardStep:
    return CardStep(
        id=name,
        role="critic",
        instructions="Прочти.",
        inputs=inputs or ("brief",),
        produces="draft",
        critical=critical,
        timeout_s=60,
        queue_timeout_s=0,
        attempts=attempts,
    )


def completed(step: str, attempt: int = 1) -> StepCompleted:
    return StepCompleted(run_id=RUN, step_id=step, attempt=attempt, artifact=an_artifact(step), context=AIContext())


def pending(step: str, attempt: int = 1) -> StepPendingStorage:
    return StepPendingStorage(
        run_id=RUN, step_id=step, attempt=attempt, artifact=an_artifact(step), context=AIContext()
    )


def retry(from_step: str | None = None) -> RetryRequested:
    return RetryRequested(from_step, ANNA)


def failed(step: str, attempt: int = 1, *, retryable: bool = True) -> StepFailed:
    return StepFailed(run_id=RUN, step_id=step, attempt=attempt, retryable=retryable, reason="модель молчит")


class Story:
    """A run that one tells what happened, and reads what it sent."""

    def __init__(self, *steps: CardStep, result: str = "", begun: bool = True) -> None:
        self.card = Card(name="card", steps=steps, result=result or steps[-1].id, artifact_deadline_s=900)
        command = StartProcess(run_id=RUN, card=self.card, inputs=(an_artifact("brief"),), params={"язык": "русский"})
        self.now = NOON
        self.run: Run = open_run(command, self.card, "user.anna", self.now)
        self.orders: list[ExecuteStep] = []
        self.told: list[Event] = []
        if begun:
            self.tell(MembersConfirmed())

    def tell(self, *happenings: RunEvent, after_s: float = 0) -> "Story":
        self.now += timedelta(seconds=after_s)
        self.orders, self.told = [], []
        for happened in happenings:
            moved = advance(self.card, self.run, happened, self.now)
            self.run = moved.run
            self.orders += moved.orders
            self.told += moved.events
        return self

    def step(self, name: str) -> Step:
        return next(step for step in self.run.steps if step.step_id == name)

    @property
    def sent(self) -> list[tuple[str, int]]:
        return [(order.step_id, order.attempt) for order in self.orders]


def test_nothing_goes_out_before_the_members_are_confirmed() -> None:
    story = Story(a_step("a"), begun=False)

    story.tell(TimePassed(), completed("a"))

    assert story.run.status is RunStatus.STARTING
    assert story.sent == []


def test_confirmed_members_start_the_run() -> None:
    story = Story(a_step("a"), a_step("b", "a"))

    assert story.sent == [("a", 1)]
    assert story.told == [
        ProcessStarted(run_id=RUN, card_name="card", members=("agent.critic", "svc.orchestrator", "user.anna")),
        StepStarted(run_id=RUN, step_id="a", attempt=1, role="critic"),
    ]
    assert members_of(story.run) == ("agent.critic", "svc.orchestrator", "user.anna")


def test_members_that_storage_refuses_end_the_run() -> None:
    story = Story(a_step("a"), begun=False).tell(MembersRefused("forbidden"))

    assert story.run.status is RunStatus.FAILED
    assert story.told == [ProcessFailed(run_id=RUN, step_id=None, reason="forbidden")]


def test_an_order_carries_all_that_the_step_needs() -> None:
    story = Story(a_step("a"), a_step("b", "brief", "a")).tell(completed("a"))

    (order,) = story.orders
    assert [(given.name, given.artifact.artifact_id) for given in order.inputs] == [
        ("brief", "art_brief"),
        ("a", "art_a"),
    ]
    assert order.instructions == "Прочти."
    assert order.params == {"язык": "русский"}
    assert order.deadline == NOON + timedelta(seconds=60)


def test_steps_without_a_path_between_them_run_side_by_side() -> None:
    story = Story(a_step("a"), a_step("b"), a_step("c", "a", "b"))
    assert story.sent == [("a", 1), ("b", 1)]

    assert story.tell(completed("b")).sent == []
    assert story.tell(completed("a")).sent == [("c", 1)]


def test_the_last_result_completes_the_run() -> None:
    story = Story(a_step("a")).tell(completed("a"), after_s=5)

    assert story.run.status is RunStatus.COMPLETED
    assert story.run.result == an_artifact("a")
    assert story.run.finished_at == NOON + timedelta(seconds=5)
    assert story.told == [ProcessCompleted(run_id=RUN, result=an_artifact("a"))]


def test_the_result_waits_for_every_critical_step() -> None:
    story = Story(a_step("a"), a_step("proof"), result="a").tell(completed("a"))
    assert story.run.status is RunStatus.RUNNING

    assert story.tell(completed("proof")).run.status is RunStatus.COMPLETED


def test_the_result_does_not_wait_for_a_step_that_is_not_critical() -> None:
    story = Story(a_step("a"), a_step("extra", critical=False), result="a").tell(completed("a"))

    assert story.run.status is RunStatus.COMPLETED
    assert story.step("extra").status is StepStatus.CANCELLED


def test_a_failed_attempt_is_repeated_after_a_pause() -> None:
    story = Story(a_step("a")).tell(failed("a"))
    assert (story.step("a").status, story.sent) == (StepStatus.PENDING, [])
    assert story.step("a").reason == "модель молчит"

    assert story.tell(TimePassed(), after_s=0.9).sent == []
    assert story.tell(TimePassed(), after_s=0.1).sent == [("a", 2)]


def test_pauses_double_up_to_a_minute() -> None:
    assert [pause_after(attempt).total_seconds() for attempt in (1, 2, 3, 6, 7, 10)] == [1, 2, 4, 32, 60, 60]


def test_a_critical_step_that_used_up_its_attempts_fails_the_run() -> None:
    story = Story(a_step("a"), a_step("b"), a_step("c", "a", "b"))

    story.tell(failed("a")).tell(TimePassed(), after_s=1).tell(failed("a", 2))

    assert story.run.status is RunStatus.FAILED
    assert story.run.reason == "step a failed: модель молчит"
    assert story.told == [ProcessFailed(run_id=RUN, step_id="a", reason="модель молчит")]
    assert [step.status for step in story.run.steps] == [StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.CANCELLED]


def test_what_cannot_succeed_is_not_repeated() -> None:
    assert Story(a_step("a")).tell(failed("a", retryable=False)).run.status is RunStatus.FAILED


def test_dependents_go_on_without_a_step_that_is_not_critical() -> None:
    story = Story(a_step("a", critical=False), a_step("b", "brief", "a"))

    story.tell(failed("a", retryable=False))

    (order,) = story.orders
    assert [given.name for given in order.inputs] == ["brief"]


def test_a_step_left_without_any_input_works_from_the_brief() -> None:
    story = Story(a_step("a", critical=False), a_step("b", "a")).tell(failed("a", retryable=False))

    assert [given.name for given in story.orders[0].inputs] == ["brief"]


def test_an_attempt_that_has_had_its_time_is_over() -> None:
    story = Story(a_step("a"))
    assert story.tell(TimePassed(), after_s=59).told == []

    story.tell(TimePassed(), after_s=1)

    assert story.step("a").status is StepStatus.PENDING
    assert story.told == [
        StepFailed(run_id=RUN, step_id="a", attempt=1, retryable=True, reason="no result within 60 s of work")
    ]


def test_a_limit_begins_with_the_work_and_the_queue_has_one_of_its_own() -> None:
    story = Story(a_step("a").model_copy(update={"queue_timeout_s": 3600}))
    (order,) = story.orders
    assert (order.deadline, order.timeout_s) == (NOON + timedelta(seconds=3660), 60)
    begun = StepBegun(run_id=RUN, step_id="a", attempt=1)

    assert story.tell(TimePassed(), after_s=3000).told == []
    assert story.tell(begun, TimePassed(), after_s=600).told == []
    assert story.tell(TimePassed(), after_s=59).told == []
    assert [type(told) for told in story.tell(TimePassed(), after_s=1).told] == [StepFailed]
    assert story.tell(begun.model_copy(update={"attempt": 7})).run == story.run

    unheard = Story(a_step("a").model_copy(update={"queue_timeout_s": 3600}))
    assert [type(told) for told in unheard.tell(TimePassed(), after_s=3660).told] == [StepFailed]


def test_no_limit_runs_while_storage_is_away() -> None:
    story = Story(a_step("a"), a_step("b"), a_step("c", "a", "b")).tell(pending("b"))
    story.tell(ClockHeld(timedelta(minutes=30)), after_s=1800)

    assert story.tell(TimePassed(), after_s=59).told == []
    assert [type(told) for told in story.tell(TimePassed(), after_s=1).told] == [StepFailed]
    assert story.tell(TimePassed(), after_s=839).run.status is RunStatus.RUNNING
    assert isinstance(story.tell(TimePassed(), after_s=1).told[0], ArtifactMissing)


def test_a_late_result_of_an_older_attempt_is_ignored() -> None:
    story = Story(a_step("a")).tell(TimePassed(), after_s=60).tell(TimePassed(), after_s=1)
    assert story.sent == [("a", 2)]
    before = story.run

    assert story.tell(completed("a", 1), pending("a", 1), failed("a", 1)).run == before
    assert story.tell(completed("a", 2)).run.status is RunStatus.COMPLETED


def test_a_result_that_comes_before_the_next_attempt_goes_out_still_counts() -> None:
    story = Story(a_step("a")).tell(TimePassed(), after_s=60).tell(completed("a", 1))

    assert story.run.status is RunStatus.COMPLETED


def test_the_last_attempts_timeout_fails_the_step() -> None:
    story = Story(a_step("a", attempts=1)).tell(TimePassed(), after_s=60)

    assert story.run.reason == "step a failed: no result within 60 s of work"


def test_what_comes_twice_counts_once() -> None:
    story = Story(a_step("a"), a_step("b", "a")).tell(completed("a"))
    before = story.run

    assert story.tell(completed("a"), MembersConfirmed()).run == before
    assert (story.orders, story.told) == ([], [])


def test_an_event_of_another_run_or_step_is_none_of_ours() -> None:
    story = Story(a_step("a"))
    before = story.run
    other_run = completed("a").model_copy(update={"run_id": "run_2"})

    assert story.tell(completed("zzz"), other_run).run == before


def test_a_critical_artifact_in_a_buffer_holds_up_who_needs_it_and_nobody_else() -> None:
    story = Story(a_step("a"), a_step("b", "a"), a_step("c"), a_step("d", "c"), a_step("e", "b", "d"))

    assert story.tell(pending("a")).sent == []
    assert story.step("a").status is StepStatus.PENDING_STORAGE
    assert story.tell(completed("c")).sent == [("d", 1)]
    assert story.tell(ArtifactFound(an_artifact("a"))).sent == [("b", 1)]
    assert story.step("a").status is StepStatus.COMPLETED


def test_an_artifact_that_is_not_critical_holds_nobody_up() -> None:
    story = Story(a_step("a", critical=False), a_step("b", "brief", "a")).tell(pending("a"))

    assert [given.name for given in story.orders[0].inputs] == ["brief"]


def test_an_artifact_that_is_found_after_the_end_is_still_noted() -> None:
    story = Story(a_step("a", critical=False), a_step("b", "brief", "a")).tell(pending("a"), completed("b"))
    assert story.run.status is RunStatus.COMPLETED

    story.tell(ArtifactFound(an_artifact("a")))

    assert story.step("a").status is StepStatus.COMPLETED
    assert (story.orders, story.told) == ([], [])


def test_the_same_id_with_other_bytes_is_not_the_awaited_artifact() -> None:
    story = Story(a_step("a")).tell(pending("a"))

    story.tell(ArtifactFound(an_artifact("a", sha="f")))

    assert story.step("a").status is StepStatus.PENDING_STORAGE


def test_the_agents_own_word_ends_the_wait_too() -> None:
    assert Story(a_step("a")).tell(pending("a")).tell(completed("a")).run.status is RunStatus.COMPLETED


def test_a_critical_artifact_that_never_comes_fails_its_step_with_an_alert() -> None:
    story = Story(a_step("a"), a_step("b", "a")).tell(pending("a"))
    assert story.tell(TimePassed(), after_s=899).told == []

    story.tell(TimePassed(), after_s=1)
    missing = ArtifactMissing(run_id=RUN, step_id="a", artifact=an_artifact("a"), since=NOON + timedelta(seconds=900))
    reason = "its artifact was not registered within 900 s"
    assert story.told == [missing, ProcessFailed(run_id=RUN, step_id="a", reason=reason)]

    assert story.tell(TimePassed(), after_s=9000).told == []


@pytest.mark.parametrize(("comes", "sent"), [(True, [("b", 1)]), (False, [("a", 2)])])
def test_an_artifact_that_comes_too_late_is_used_by_the_retry(comes: bool, sent: list[tuple[str, int]]) -> None:
    story = Story(a_step("a"), a_step("b", "a")).tell(pending("a")).tell(TimePassed(), after_s=900)
    if comes:
        assert story.tell(ArtifactFound(an_artifact("a"))).run.status is RunStatus.FAILED

    assert story.tell(retry()).sent == sent


def test_a_result_that_comes_too_late_is_the_result_of_the_retry() -> None:
    story = Story(a_step("a")).tell(pending("a")).tell(TimePassed(), after_s=900).tell(ArtifactFound(an_artifact("a")))
    assert story.run.status is RunStatus.FAILED

    assert story.tell(retry()).sent == []
    assert (story.run.status, story.run.result) == (RunStatus.COMPLETED, an_artifact("a"))


def test_a_step_beside_the_result_is_made_again_when_a_person_wants_it() -> None:
    story = Story(a_step("aside", critical=False), a_step("c")).tell(completed("aside"), completed("c"))

    assert story.tell(retry("aside")).sent == [("aside", 2)]
    assert story.run.status is RunStatus.RUNNING
    assert story.tell(completed("aside", 2)).run.status is RunStatus.COMPLETED
    assert story.step("aside").status is StepStatus.COMPLETED


def test_a_step_that_may_be_missing_is_tried_again_after_the_run_has_ended() -> None:
    story = Story(a_step("aside", critical=False), a_step("c")).tell(failed("aside", retryable=False), completed("c"))

    assert story.tell(retry()).sent == [("aside", 2)]
    assert story.tell(failed("aside", 2, retryable=False)).run.status is RunStatus.COMPLETED


def test_a_retry_of_what_was_given_up_makes_what_needs_it_too() -> None:
    story = Story(a_step("slow", critical=False), a_step("aside", "slow", critical=False), a_step("c"))
    story.tell(completed("c"))
    assert story.run.status is RunStatus.COMPLETED

    assert story.tell(retry()).sent == [("slow", 2)]
    assert story.tell(completed("slow", 2)).sent == [("aside", 1)]
    assert story.tell(completed("aside")).run.status is RunStatus.COMPLETED


def test_a_paused_run_takes_results_in_and_sends_nothing() -> None:
    story = Story(a_step("a"), a_step("b", "a")).tell(PauseRequested("обед", ANNA))
    assert story.told == [ProcessPaused(run_id=RUN, reason="обед", paused_by=ANNA)]
    assert (story.run.status, story.run.reason) == (RunStatus.PAUSED, "обед")
    assert story.tell(PauseRequested("again", ANNA)).told == []

    story.tell(completed("a"))
    assert (story.sent, story.step("a").status) == ([], StepStatus.COMPLETED)

    story.tell(ResumeRequested(ANNA))
    assert story.told[0] == ProcessResumed(run_id=RUN, resumed_by=ANNA)
    assert (story.run.status, story.run.reason, story.sent) == (RunStatus.RUNNING, "", [("b", 1)])


def test_a_paused_run_can_be_cancelled() -> None:
    story = Story(a_step("a")).tell(PauseRequested("", ANNA), CancelRequested("", ANNA))

    assert story.run.status is RunStatus.CANCELLED


def test_a_retry_uses_what_is_there_and_gives_the_failed_step_all_its_attempts() -> None:
    story = Story(a_step("a"), a_step("b", "a"), a_step("c", "b")).tell(completed("a"))
    story.tell(failed("b")).tell(TimePassed(), after_s=1).tell(failed("b", 2))
    assert story.run.status is RunStatus.FAILED

    story.tell(retry())

    assert story.told[0] == ProcessRetried(run_id=RUN, steps=("b", "c"), retried_by=ANNA)
    assert (story.run.status, story.run.finished_at, story.run.reason) == (RunStatus.RUNNING, None, "")
    assert story.sent == [("b", 3)]
    assert (story.orders[0].round, story.orders[0].supersedes) == (1, None)
    story.tell(failed("b", 3))
    assert (story.step("b").status, story.run.status) == (StepStatus.PENDING, RunStatus.RUNNING)
    assert story.tell(TimePassed(), after_s=1).sent == [("b", 4)]
    assert story.tell(completed("b", 4)).sent == [("c", 1)]


def test_a_retry_from_a_step_makes_new_versions_of_it_and_of_what_was_made_of_it() -> None:
    story = Story(a_step("a"), a_step("b", "a"), a_step("aside"), a_step("c", "b", "aside"))
    story.tell(completed("a"), completed("aside")).tell(completed("b")).tell(completed("c"))
    assert story.run.status is RunStatus.COMPLETED

    story.tell(retry("b"))

    assert story.told[0] == ProcessRetried(run_id=RUN, from_step="b", steps=("b", "c"), retried_by=ANNA)
    (order,) = story.orders
    assert (order.step_id, order.attempt, order.round, order.supersedes) == ("b", 2, 2, an_artifact("b"))
    assert story.tell(completed("b")).sent == [], "the attempt of before the retry counts no more"
    assert story.step("b").status is StepStatus.RUNNING
    assert story.tell(completed("b", 2)).sent == [("c", 2)]
    assert story.tell(completed("c", 2)).run.status is RunStatus.COMPLETED


def test_a_retry_of_a_run_that_goes_on_puts_an_attempt_off_that_works_from_the_old_output() -> None:
    story = Story(a_step("a"), a_step("b", "a")).tell(completed("a"))

    assert story.tell(retry("a")).sent == [("a", 2)]
    assert story.tell(completed("b")).run.status is RunStatus.RUNNING
    assert story.tell(completed("a", 2)).sent == [("b", 2)]


def test_an_output_that_a_person_puts_in_place_is_what_the_next_steps_work_from() -> None:
    story = Story(a_step("a"), a_step("b", "a"), a_step("c", "b")).tell(completed("a")).tell(completed("b"))
    edited = an_artifact("edited")

    story.tell(OutputGiven("a", edited, ANNA))

    replaced = OutputReplaced(run_id=RUN, step_id="a", artifact=edited, steps=("b", "c"), replaced_by=ANNA)
    assert story.told[0] == replaced
    assert (story.step("a").artifact, story.step("a").by) == (edited, ANNA)
    assert story.sent == [("b", 2)]
    assert story.orders[0].inputs[0].artifact == edited
    before = story.run
    assert story.tell(OutputGiven("a", edited, ANNA), completed("a")).run == before


def test_an_output_put_in_place_of_the_result_is_the_new_result() -> None:
    story = Story(a_step("a")).tell(completed("a")).tell(OutputGiven("a", an_artifact("edited"), ANNA))

    assert (story.run.status, story.run.result) == (RunStatus.COMPLETED, an_artifact("edited"))


def test_an_output_put_in_place_of_a_step_that_failed_saves_the_run() -> None:
    story = Story(a_step("a"), a_step("b", "a")).tell(failed("a", retryable=False))

    assert story.tell(OutputGiven("a", an_artifact("by-hand"), ANNA)).sent == [("b", 1)]


@pytest.mark.parametrize(
    ("events", "request_", "reason"),
    [
        ([completed("a")], PauseRequested("", ANNA), "run_1 is completed; only a run that goes on can be paused"),
        ([completed("a")], ResumeRequested(ANNA), "run_1 is completed; a run that is over is retried"),
        ([completed("a")], RetryRequested(None, ANNA), "run_1 is completed, and nothing has failed; name a step"),
        ([], RetryRequested(None, ANNA), "run_1 is running, and nothing has failed; name a step"),
        ([], RetryRequested("zz", ANNA), "card has no step 'zz'; it has a"),
        ([], OutputGiven("zz", an_artifact(), ANNA), "card has no step 'zz'; it has a"),
    ],
)
def test_what_cannot_be_done_with_a_run_is_refused_with_the_reason(
    events: list[RunEvent], request_: RunEvent, reason: str
) -> None:
    story = Story(a_step("a")).tell(*events)

    with pytest.raises(Rejected, match=re.escape(reason)):
        story.tell(request_)


def test_a_run_that_has_not_begun_is_not_steered() -> None:
    with pytest.raises(Rejected, match="has not begun yet"):
        Story(a_step("a"), begun=False).tell(PauseRequested("", ANNA))


def test_a_cancelled_run_sends_nothing_more() -> None:
    story = Story(a_step("a"), a_step("b", "a")).tell(CancelRequested("передумали", "user.anna"))

    assert story.told == [ProcessCancelled(run_id=RUN, reason="передумали", cancelled_by="user.anna")]
    assert [step.status for step in story.run.steps] == [StepStatus.CANCELLED] * 2

    before = story.run
    assert story.tell(completed("a"), TimePassed(), CancelRequested("again", "user.b"), after_s=99).run == before
    assert (story.orders, story.told) == ([], [])


@pytest.mark.parametrize("begun", [True, False])
def test_a_run_can_be_cancelled_at_any_time(begun: bool) -> None:
    story = Story(a_step("a"), begun=begun).tell(CancelRequested("", "user.anna"))

    assert story.run.status is RunStatus.CANCELLED
    assert story.tell(MembersConfirmed()).run.status is RunStatus.CANCELLED


def test_orders_that_the_broker_has_lost_are_sent_again_as_the_same_attempts() -> None:
    story = Story(a_step("a"), a_step("b"), a_step("c", "a", "b"), a_step("d", "c")).tell(completed("a"))

    story.tell(OrdersLost(), after_s=10)
    assert story.sent == [("b", 1)]
    assert story.step("b").due_at == story.now + timedelta(seconds=60)
    assert story.tell(completed("b")).sent == [("c", 1)]


def test_of_a_run_that_is_paused_or_over_nothing_is_sent_again() -> None:
    story = Story(a_step("a")).tell(PauseRequested("wait", "user.anna"), OrdersLost())
    assert story.sent == []
    assert story.tell(ResumeRequested("user.anna")).sent == [("a", 1)]
    assert story.tell(completed("a"), OrdersLost()).sent == []

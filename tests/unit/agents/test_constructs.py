"""The constructs of cards, one by one: conditions, gates, timers, loops, fan-outs, sub-cards."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from agents.processes.cards import parse_card
from agents.processes.conditions import Condition, InvalidCondition, Value, renamed
from agents.processes.cost import cost_lines
from agents.processes.run_events import (
    ApprovalGiven,
    MembersConfirmed,
    OutputGiven,
    ResumeRequested,
    RunEvent,
    TimePassed,
)
from agents.processes.saga import advance, open_run
from bus_schema.artifacts import AIContext
from bus_schema.cards import MOST_ITEMS
from bus_schema.messages import Event
from bus_schema.notification import NotificationGenerated
from bus_schema.process import ExecuteStep, StartProcess, StepCompleted, StepFailed
from bus_schema.run_control import ApprovalRequested, ProcessPaused, StepAnswered
from bus_schema.runs import RunStatus, Spent, Step, StepStatus
from mindbus.errors import Rejected
from tests.unit.agents.test_orchestrator import ANNA, NOON, RUN, an_artifact, retry

ROLES = frozenset({"researcher", "critic", "editor", "pushkin"})


class CardStory:
    """A run of a card in YAML, that one tells what happened."""

    def __init__(
        self, steps: str, *, result: str = "end", head: str = "", inputs: int = 1, params: dict[str, str] | None = None
    ) -> None:
        self.card = parse_card(f"name: card\nresult: {result}\n{head}steps:\n{steps}".encode(), "card.yaml", ROLES)
        briefs = tuple(an_artifact(f"brief{number}") for number in range(1, inputs + 1))
        start = StartProcess(run_id=RUN, card=self.card, inputs=briefs, params=params or {})
        self.now, self.run = NOON, open_run(start, self.card, ANNA, NOON)
        self.orders: list[ExecuteStep] = []
        self.told: list[Event] = []
        self.tell(MembersConfirmed())

    def tell(self, *events: RunEvent, after: timedelta = timedelta()) -> "CardStory":
        self.now += after
        self.orders, self.told = [], []
        for event in events:
            moved = advance(self.card, self.run, event, self.now)
            self.run = moved.run
            self.orders += moved.orders
            self.told += moved.events
        return self

    def make(self, name: str, **values: bool | str | tuple[str, ...]) -> "CardStory":
        """The step's attempt under way has its artifact, with these values."""
        step = self.step(name)
        made = an_artifact(f"{name}_{step.attempt}")
        context = AIContext(values=values)
        return self.tell(StepCompleted(run_id=RUN, step_id=name, attempt=step.attempt, artifact=made, context=context))

    def step(self, name: str) -> Step:
        return next(step for step in self.run.steps if step.step_id == name)

    @property
    def sent(self) -> list[str]:
        return [order.step_id for order in self.orders]

    def inputs(self, place: int = 0) -> list[str]:
        return [f"{given.name}={given.artifact.artifact_id}" for given in self.orders[place].inputs]


def a_step(name: str, *more: str, inputs: str = "brief", role: str = "critic") -> str:
    fields = (f"id: {name}", f"role: {role}", "produces: draft", "instructions: x", f"inputs: [{inputs}]", *more)
    return "  - {" + ", ".join(fields) + "}\n"


def gate(name: str, *more: str, inputs: str = "brief") -> str:
    return "  - {" + ", ".join((f"id: {name}", "approve: Publish it?", f"inputs: [{inputs}]", *more)) + "}\n"


VALUES: Mapping[tuple[str, str], Value] = {
    ("critique", "satisfied"): True,
    ("fact-check", "answer"): "Bug",
    ("params", "length"): 3,
    ("plan", "count"): 0,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("critique.satisfied", True),
        ("not critique.satisfied", False),
        ("critique.satisfied == true", True),
        ("fact-check.answer == 'bug'", True),
        ('fact-check.answer != "bug"', False),
        ("params.length > 2 and params.length <= 3", True),
        ("params.length < 3 or plan.count", False),
        ("not (plan.count == 0) or critique.satisfied and params.length >= 3", True),
        ("fact-check.answer > 3", False),
        ("params.nothing", False),
        ("params.nothing < 3", False),
        ("not params.nothing", True),
    ],
)
def test_a_condition_reads_outputs_and_parameters(text: str, holds: bool) -> None:
    assert Condition.parse(text).holds(lambda name, value: VALUES.get((name, value))) is holds
    assert Condition.parse(renamed(text, {})).holds(lambda name, value: VALUES.get((name, value))) is holds


@pytest.mark.parametrize(
    "text",
    ["critique", "a.b c.d", "a.b ==", "(a.b", "a.b == ;", "and", "not", "''.x y", "3.x.y", "(" * 250, "not " * 100],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidCondition):
        Condition.parse(text)


def test_a_step_whose_condition_does_not_hold_is_skipped_with_what_is_made_of_it_alone() -> None:
    steps = a_step("check") + a_step("mend", "when: not check.satisfied", inputs="check")
    steps += a_step("polish", inputs="mend") + a_step("end", inputs="check, polish")
    story = CardStory(steps).make("check", satisfied=True)

    assert [story.step(name).status for name in ("mend", "polish")] == [StepStatus.SKIPPED] * 2
    assert story.step("mend").reason == "not so: not check.satisfied"
    assert story.sent == ["end"]
    assert story.inputs() == ["check=art_check_1"]
    assert story.make("end").run.status is RunStatus.COMPLETED
    assert CardStory(steps).make("check", satisfied=False).sent == ["mend"]


def test_an_order_asks_for_the_values_that_the_card_asks_about() -> None:
    story = CardStory(a_step("a") + a_step("end", "when: a.satisfied and a.count > 1", inputs="a"))

    assert story.orders[0].values == ("items", "satisfied")
    assert CardStory(a_step("end")).orders[0].values == ()


def test_parameters_decide_and_have_their_types_and_defaults() -> None:
    head = "parameters: {deep: {type: boolean, default: false}, rounds: {type: integer, default: 2}, tone: {}}\n"
    steps = a_step("look", "when: params.deep and params.rounds > 1") + a_step("end", inputs="brief, look")

    shallow = CardStory(steps, head=head, params={"tone": "dry"})
    assert shallow.run.params == {"deep": "false", "rounds": "2", "tone": "dry"}
    assert shallow.sent == ["end"]
    assert CardStory(steps, head=head, params={"tone": "dry", "deep": "yes"}).sent == ["look"]
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, "card needs the parameter 'tone': --set tone=…"),
        ({"tone": "dry", "rounds": "many"}, "the parameter 'rounds' of card is a whole number, not 'many'"),
        ({"tone": "dry", "depe": "1"}, "card has no parameter 'depe'; did you mean 'deep'?"),
    ]
    for params, reason in wrong:
        with pytest.raises(Rejected) as refused:
            CardStory(steps, head=head, params=params)
        assert str(refused.value).startswith(reason)


def test_a_gate_waits_without_a_clock_and_opens_when_somebody_approves() -> None:
    story = CardStory(a_step("a") + gate("ask", inputs="a") + a_step("end", inputs="a, ask")).make("a")
    asked = ApprovalRequested(run_id=RUN, step_id="ask", question="Publish it?", artifacts=(an_artifact("a_1"),))
    assert (story.told[0], story.sent, story.step("ask").status) == (asked, [], StepStatus.WAITING)
    notification = story.told[1]
    assert isinstance(notification, NotificationGenerated)
    assert (notification.to_user, notification.message) == ("anna", "Publish it?")
    assert story.tell(TimePassed(), after=timedelta(days=400)).told == []

    story.tell(ApprovalGiven("ask", True, "good", ANNA))

    answered = StepAnswered(run_id=RUN, step_id="ask", approved=True, note="good", answered_by=ANNA)
    assert story.told[0] == answered
    assert story.sent == ["end"]
    assert (story.step("ask").by, story.step("ask").note) == (ANNA, "good")
    with pytest.raises(Rejected, match="ask of run_1 is completed and asks nobody"):
        story.tell(ApprovalGiven("ask", True, "", ANNA))


def test_a_rejected_gate_fails_the_run_and_a_retry_asks_again() -> None:
    story = CardStory(gate("ask") + a_step("end", inputs="brief, ask"))

    assert story.tell(ApprovalGiven("ask", False, "слабо", ANNA)).run.status is RunStatus.FAILED
    assert story.run.reason == "step ask failed: rejected by user.anna: слабо"
    assert isinstance(story.tell(retry()).told[1], ApprovalRequested)
    notices = [event for event in story.told if isinstance(event, NotificationGenerated)]
    assert [notice.about for notice in notices] == [f"{RUN}/ask/2"]


def test_a_gate_that_is_not_critical_leaves_the_choice_to_conditions() -> None:
    steps = gate("ask", "critical: false") + a_step("loud", "when: ask.approved", inputs="brief, ask")
    story = CardStory(steps + a_step("end", inputs="brief, loud")).tell(ApprovalGiven("ask", False, "", ANNA))

    assert (story.step("loud").status, story.sent) == (StepStatus.SKIPPED, ["end"])


def test_a_timer_waits_for_its_time() -> None:
    story = CardStory("  - {id: rest, wait: 10m}\n" + a_step("end", inputs="brief, rest"))
    assert (story.sent, story.step("rest").due_at) == ([], NOON + timedelta(minutes=10))

    assert story.tell(TimePassed(), after=timedelta(minutes=9)).sent == []
    assert story.tell(TimePassed(), after=timedelta(minutes=1)).sent == ["end"]


LOOP = (
    a_step("draft")
    + a_step("critique", "repeat: {back_to: draft, until: critique.satisfied, max_rounds: 3}", inputs="brief, draft")
    + a_step("end", inputs="draft")
)


def test_a_loop_goes_round_until_its_condition_holds_and_each_round_supersedes_the_last() -> None:
    story = CardStory(LOOP).make("draft")
    assert story.sent == ["critique"], "who uses a part of a loop waits for its end"

    story.make("critique", satisfied=False)
    (order,) = story.orders
    assert (order.step_id, order.round, order.attempt) == ("draft", 2, 2)
    assert order.supersedes == an_artifact("draft_1")
    assert story.inputs() == ["brief=art_brief1", "draft=art_draft_1", "critique=art_critique_1"]

    assert story.make("draft").sent == ["critique"]
    assert story.make("critique", satisfied=True).sent == ["end"]
    assert story.inputs() == ["draft=art_draft_2"]
    assert [story.step(name).round for name in ("draft", "critique")] == [2, 2]


def test_the_cost_of_a_step_is_that_of_all_its_rounds() -> None:
    story = CardStory(LOOP)
    context = AIContext(model_calls=2, prompt_tokens=100, completion_tokens=20, execution_time_ms=1500, price=0.5)
    for _ in range(2):
        attempt = story.step("draft").attempt
        made = an_artifact(f"draft_{attempt}")
        story.tell(StepCompleted(run_id=RUN, step_id="draft", attempt=attempt, artifact=made, context=context))
        story.make("critique", satisfied=False)

    by_step = {line.key: line.spent for line in cost_lines([story.run], "step")}
    twice = Spent(model_calls=4, prompt_tokens=200, completion_tokens=40, took_ms=3000, price=1.0)
    assert by_step == {"draft": twice, "critique": Spent(), "end": Spent()}
    assert [(line.key, line.runs, line.spent) for line in cost_lines([story.run], "user")] == [(ANNA, 1, twice)]
    assert [line.key for line in cost_lines([story.run, story.run], "day")] == ["2025-06-01"]


def test_a_run_over_its_budget_is_paused_until_a_person_lets_it_go_on() -> None:
    story = CardStory(a_step("a") + a_step("b", inputs="a") + a_step("end", inputs="b"), head="budget_tokens: 100\n")
    costly = AIContext(prompt_tokens=90, completion_tokens=20)

    def make(name: str) -> None:
        story.tell(StepCompleted(run_id=RUN, step_id=name, attempt=1, artifact=an_artifact(name), context=costly))

    make("a")
    reason = "its models have used 110 tokens, of a budget of 100"
    assert (story.run.status, story.run.reason, story.sent) == (RunStatus.PAUSED, reason, [])
    assert [type(told) for told in story.told] == [ProcessPaused, NotificationGenerated]

    assert story.tell(ResumeRequested(ANNA)).sent == ["b"]
    make("b")
    assert story.sent == []
    assert story.tell(ResumeRequested(ANNA)).sent == ["end"]
    make("end")
    assert story.run.result is not None, "nothing more is to be spent"


def test_a_loop_ends_after_its_rounds_whatever_is_found() -> None:
    story = CardStory(LOOP)
    for _ in range(3):
        story.make("draft").make("critique", satisfied=False)

    assert (story.sent, story.step("draft").attempt) == (["end"], 3)
    story.make("end")
    assert story.tell(retry("draft")).orders[0].round == 4
    story.make("draft")
    assert story.make("critique", satisfied=False).sent == ["draft"], "a retry has all its rounds again"


def test_a_rejection_sends_the_loop_round_with_the_note() -> None:
    steps = a_step("draft") + gate(
        "ask", "repeat: {back_to: draft, until: ask.approved, max_rounds: 2}", inputs="draft"
    )
    story = CardStory(steps + a_step("end", inputs="draft")).make("draft")

    story.tell(ApprovalGiven("ask", False, "короче", ANNA))
    (order,) = story.orders
    assert (order.step_id, order.round, order.note) == ("draft", 2, "короче")
    story.make("draft")
    assert story.step("ask").status is StepStatus.WAITING
    assert story.tell(ApprovalGiven("ask", False, "", ANNA)).run.status is RunStatus.FAILED


FAN = a_step("plan") + a_step("read", "for_each: plan.items", inputs="plan") + a_step("end", inputs="brief, read")


def test_a_list_is_fanned_out_and_gathered() -> None:
    story = CardStory(FAN).make("plan", items=("один", "два", "три"))
    assert [(order.step_id, order.item) for order in story.orders] == [
        ("read-1", "один"),
        ("read-2", "два"),
        ("read-3", "три"),
    ]

    assert story.make("read-2").make("read-3").sent == []
    assert story.make("read-1").sent == ["end"]
    assert story.inputs() == ["brief=art_brief1", *(f"read=art_read-{number}_1" for number in (1, 2, 3))]
    assert story.make("end").run.status is RunStatus.COMPLETED


def test_inputs_of_the_run_are_fanned_out_one_to_a_part() -> None:
    steps = a_step("read", "for_each: brief") + a_step("end", inputs="read")
    story = CardStory(steps, inputs=2)

    assert [(story.inputs(place), story.orders[place].item) for place in (0, 1)] == [
        (["brief=art_brief1"], ""),
        (["brief=art_brief2"], ""),
    ]


def test_parts_of_a_fan_out_are_fanned_out_again_one_to_a_part() -> None:
    steps = a_step("get", "for_each: brief") + a_step("read", "for_each: get", inputs="brief, get")
    story = CardStory(steps + a_step("end", inputs="read"), inputs=2)
    story.make("get-2").make("get-1")

    assert [(story.inputs(place), story.orders[place].item) for place in (0, 1)] == [
        (["brief=art_brief1", "brief=art_brief2", "get=art_get-1_1"], ""),
        (["brief=art_brief1", "brief=art_brief2", "get=art_get-2_1"], ""),
    ]
    assert story.make("read-1").make("read-2").sent == ["end"]


def test_a_part_that_is_not_there_is_not_fanned_out_again() -> None:
    steps = a_step("get", "for_each: brief, critical: false") + a_step("read", "for_each: get", inputs="get")
    story = CardStory(steps + a_step("end", inputs="read"), inputs=2).make("get-1")
    story.tell(StepFailed(run_id=RUN, step_id="get-2", attempt=1, retryable=False, reason="x"))

    assert story.sent == ["read-1"]
    assert story.make("read-1").sent == ["end"]


def test_a_part_that_may_be_missing_is_tried_again_after_the_run_has_ended() -> None:
    steps = a_step("plan") + a_step("read", "for_each: plan.items, critical: false", inputs="plan")
    story = CardStory(steps + a_step("end", inputs="brief, read")).make("plan", items=("a", "b")).make("read-1")
    story.tell(StepFailed(run_id=RUN, step_id="read-2", attempt=1, retryable=False, reason="x")).make("end")
    assert story.run.status is RunStatus.COMPLETED

    assert story.tell(retry()).sent == ["read-2"]


def test_a_fan_out_whose_list_was_not_made_again_waits_for_the_list() -> None:
    story = CardStory(FAN).make("plan", items=("a", "b")).make("read-1").make("read-2").make("end")
    story.tell(retry("plan"))
    story.tell(StepFailed(run_id=RUN, step_id="plan", attempt=2, retryable=False, reason="x"))
    assert story.run.status is RunStatus.FAILED

    assert story.tell(retry()).sent == ["plan"]
    assert story.make("plan", items=("c",)).sent == ["read-2-1"]
    assert story.make("read-2-1").sent == ["end"]


@pytest.mark.parametrize("name", ["ask", "read"])
def test_a_gate_and_a_fan_out_have_no_output_to_replace(name: str) -> None:
    steps = FAN.replace("[brief, read]", "[brief, read, ask]") + gate("ask")
    story = CardStory(steps).make("plan", items=("a",))

    with pytest.raises(Rejected, match=f"{name} has no output of its own"):
        story.tell(OutputGiven(name, an_artifact("x"), ANNA))


def test_a_retry_of_a_fan_out_makes_the_parts_that_have_failed_alone() -> None:
    story = CardStory(FAN).make("plan", items=("один", "два")).make("read-1")
    story.tell(StepFailed(run_id=RUN, step_id="read-2", attempt=1, retryable=False, reason="x"))
    assert story.run.status is RunStatus.FAILED

    assert story.tell(retry()).sent == ["read-2"]
    assert story.make("read-2").sent == ["end"]


def test_a_fan_out_that_is_made_anew_has_new_parts_and_old_ones_count_no_more() -> None:
    story = CardStory(FAN).make("plan", items=("один", "два")).make("read-1")

    assert story.tell(retry("plan")).sent == ["plan"]
    late = story.make("read-2")
    assert late.sent == []
    assert story.make("plan", items=("три",)).sent == ["read-2-1"]
    assert story.make("read-2-1").inputs() == ["brief=art_brief1", "read=art_read-2-1_1"]


def test_a_fan_out_that_is_made_anew_forgets_the_parts_that_have_failed() -> None:
    story = CardStory(FAN).make("plan", items=("один", "два")).make("read-1")
    story.tell(StepFailed(run_id=RUN, step_id="read-2", attempt=1, retryable=False, reason="x"))

    assert story.tell(retry("plan")).sent == ["plan"]
    assert story.make("plan", items=("три",)).sent == ["read-2-1"]
    story.tell(StepFailed(run_id=RUN, step_id="read-2-1", attempt=1, retryable=False, reason="x"))
    assert story.run.status is RunStatus.FAILED
    assert story.tell(retry()).sent == ["read-2-1"]
    assert story.make("read-2-1").sent == ["end"]


def test_a_list_of_nothing_is_gathered_at_once() -> None:
    assert CardStory(FAN).make("plan", items=()).sent == ["end"]


def test_a_list_that_is_too_long_fails_the_step_before_anything_is_sent() -> None:
    fits = CardStory(FAN).make("plan", items=tuple(map(str, range(MOST_ITEMS))))
    assert len(fits.orders) == MOST_ITEMS

    story = CardStory(FAN).make("plan", items=tuple(map(str, range(MOST_ITEMS + 1))))
    assert story.run.status is RunStatus.FAILED
    assert story.run.reason == "step read failed: plan.items has more than 200 items; ask for fewer"
    assert len(story.run.steps) == 3


def test_a_sub_card_is_written_out_where_it_stands() -> None:
    steps = a_step("draft") + "  - {id: check, card: review, inputs: [draft]}\n" + a_step("end", inputs="brief, check")
    story = CardStory(steps).make("draft")

    assert [step.step_id for step in story.run.steps] == ["draft", "check-critique", "check-facts", "check", "end"]
    assert story.sent == ["check-critique", "check-facts"]
    assert story.make("check-critique").make("check-facts").sent == ["check"]
    assert story.inputs()[0] == "draft=art_draft_1"
    assert story.make("check").sent == ["end"]


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (a_step("end", "when: crit.satisfied"), "card.yaml:4: steps[0].when: no step is called 'crit'"),
        (a_step("end", "when: params.deep"), "card.yaml:4: steps[0].when: there is no parameter 'deep'; declare it"),
        (a_step("end", "when: end.satisfied"), "card.yaml:4: steps[0].inputs: these steps wait for each other: end"),
        (a_step("a") + a_step("end", "when: a.nice"), "card.yaml:5: steps[1].when: a has no value 'nice'; known: "),
        (a_step("end", "when: 'a.b c'"), "card.yaml:4: steps[0].when: 'a.b c' 'c' is one word too many"),
        (a_step("end", "approve: Well?"), "card.yaml:4: steps[0].approve: a step is one thing: role or approve"),
        (gate("a", "for_each: brief") + a_step("end"), "card.yaml:4: steps[0].for_each: is for steps of a role"),
        (a_step("end", "wait: soon"), "card.yaml:4: steps[0].wait: 'soon' has characters that do not fit here"),
        (a_step("a", "for_each: b.items") + a_step("end"), "card.yaml:4: steps[0].for_each: is brief, a step that"),
        (
            a_step("a", "for_each: brief") + a_step("b", "for_each: a") + a_step("end"),
            "card.yaml:5: steps[1].for_each: makes one of each part of a; put that among the inputs, too",
        ),
        (
            a_step("a") + a_step("b", "for_each: a", inputs="a") + a_step("end"),
            "card.yaml:5: steps[1].for_each: is brief, a step that has for_each itself",
        ),
        (
            a_step("a", "for_each: brief") + a_step("a-1") + a_step("end"),
            "card.yaml:4: steps[0].id: the parts of a are",
        ),
        (a_step("end", "for_each: brief"), "card.yaml:4: steps[0].for_each: this step makes the result, which is one"),
        (
            a_step("a") + a_step("end", "repeat: {back_to: a, until: end.satisfied}"),
            "card.yaml:5: steps[1].repeat.back_to: end does not depend on a, so it cannot send it back",
        ),
        (
            a_step("end", "repeat: {back_to: nowhere, until: end.satisfied}"),
            "card.yaml:4: steps[0].repeat.back_to: no step is called 'nowhere'",
        ),
        (f"  - {{id: {'e' * 60}, card: review}}\n" + a_step("end"), "card.yaml:4: steps[0].card: its steps get names"),
        (a_step("e" * 57, "for_each: brief") + a_step("end"), "card.yaml:4: steps[0].id: the numbers of its parts"),
        ("  - {id: end, card: nothing}\n", "card.yaml:4: steps[0].card: there is no card 'nothing'; shipped are "),
        (gate("end"), "card.yaml:2: result: end makes nothing; name a step of a role"),
    ],
)
def test_what_cannot_run_is_refused_with_file_and_line(steps: str, problem: str) -> None:
    with pytest.raises(Rejected) as refused:
        CardStory(steps)

    assert [line for line in str(refused.value).splitlines() if line.startswith(problem)], str(refused.value)


def test_a_role_is_asked_for_what_it_makes_alone() -> None:
    text = b"name: card\nresult: a\nsteps:\n  - {id: a, role: critic, produces: idea, instructions: x}\n"
    with pytest.raises(Rejected) as refused:
        parse_card(text, "card.yaml", {"critic": ("critique",)})

    assert str(refused.value) == "card.yaml:4: steps[0].produces: critic makes critique, not idea"

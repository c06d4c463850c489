"""Runs of process cards as the orchestrator keeps them: status, steps, answers of models that were no result."""

import operator
from enum import StrEnum
from functools import reduce
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, StringConstraints

from bus_schema.artifacts import AIContext, ArtifactRef, Retention, StepId
from bus_schema.cards import CardName
from bus_schema.identities import Identity, ServiceName
from bus_schema.messages import Value

RunId = Annotated[str, StringConstraints(pattern=r"^run_[A-Za-z0-9_-]{1,64}$")]


class RunStatus(StrEnum):
    """Status of a run; `starting` until storage has confirmed its members; a `paused` run sends no further steps."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepStatus(StrEnum):
    """Status of a step; `pending_storage` means done, with the artifact still in the agent's buffer.

    A `waiting` step waits for a person, or for its time; one whose condition does not hold is `skipped`.
    """

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    SKIPPED = "skipped"
    PENDING_STORAGE = "pending_storage"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class MisbehaviourKind(StrEnum):
    """Kind of an answer that is not a result; the last three do not fail an attempt.

    Nor does an endless answer that could be ended where it began to repeat itself.
    """

    EMPTY = "empty"
    REFUSAL = "refusal"
    ENDLESS = "endless"
    WRONG_LANGUAGE = "wrong_language"
    OFF_TOPIC = "off_topic"
    NO_LIST = "no_list"
    STALLED = "stalled"
    CUT_OFF = "cut_off"
    UNREADABLE = "unreadable"


class Misbehaviour(Value):
    """A model's answer that is not a result: in which call of an attempt, in the model's own words, cut short."""

    attempt: int
    kind: MisbehaviourKind
    call: str
    model_name: str
    words: str = Field(default="", max_length=500)


class Spent(Value):
    """Cost of what models have made, in the currency of the operator's price table."""

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    took_ms: int = 0
    price: float | None = None

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def of(cls, context: AIContext | None) -> Self:
        """The cost of one output."""
        if context is None:
            return cls()
        return cls(
            model_calls=context.model_calls or 0,
            prompt_tokens=context.prompt_tokens or 0,
            completion_tokens=context.completion_tokens or 0,
            took_ms=context.execution_time_ms or 0,
            price=context.price,
        )

    def __add__(self, other: "Spent") -> "Spent":
        """Both together; a price is known where one of them is."""
        prices = [each for each in (self.price, other.price) if each is not None]
        return Spent(
            model_calls=self.model_calls + other.model_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            took_ms=self.took_ms + other.took_ms,
            price=sum(prices) if prices else None,
        )


class Step(Value):
    """A step of a run; at `due_at` it times out, is retried, or its artifact is reported missing.

    `round` counts how often its output is made: the new one supersedes `before`. Attempts up to `attempts_before` and
    rounds up to `rounds_before` no longer count. `by` is the person who has replaced its output, or who has given or
    refused an approval, with a `note`. `spent_before` is what earlier rounds have cost. A step made `of` another is its
    work on one `item`.
    """

    step_id: StepId
    role: ServiceName
    status: StepStatus = StepStatus.PENDING
    attempt: int = 0
    critical: bool = True
    artifact: ArtifactRef | None = None
    context: AIContext | None = None
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    due_at: AwareDatetime | None = None
    reason: str = ""
    misbehaviours: tuple[Misbehaviour, ...] = ()
    round: int = 1
    attempts_before: int = 0
    before: ArtifactRef | None = None
    by: Identity | None = None
    rounds_before: int = 0
    of: StepId | None = None
    item: str = ""
    approved: bool | None = None
    note: str = ""
    spent_before: Spent = Spent()

    @property
    def spent(self) -> Spent:
        """The cost of all of its rounds."""
        return self.spent_before + Spent.of(self.context)


class Run(Value):
    """A run in the orchestrator's database; its id is its trace.

    `budget_from` is what its models had used when a person last let it continue. The daily budget of its starter does
    not apply to a run that `is_budget_free`: an operator has started it, or let it continue.
    """

    run_id: RunId
    card_name: CardName
    status: RunStatus
    started_by: Identity
    started_at: AwareDatetime
    finished_at: AwareDatetime | None = None
    inputs: tuple[ArtifactRef, ...]
    params: dict[str, str] = Field(default={})
    retention: Retention | None = None
    steps: tuple[Step, ...]
    result: ArtifactRef | None = None
    reason: str = ""
    budget_from: int = 0
    is_budget_free: bool = False

    @property
    def steps_in_order(self) -> tuple[Step, ...]:
        """Steps as the card has them, the parts of each after it."""
        whole = (step for step in self.steps if step.of is None)
        return tuple(
            each for step in whole for each in (step, *(part for part in self.steps if part.of == step.step_id))
        )

    @property
    def spent(self) -> Spent:
        """The cost so far."""
        return reduce(operator.add, (step.spent for step in self.steps), Spent())

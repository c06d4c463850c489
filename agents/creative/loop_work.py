"""One run of a role's loop: state in its checkpoints, assignment, model, and what its calls cost."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypedDict

from agents.creative.assignment import Assignment
from agents.creative.generation import GeneratedText
from agents.creative.misbehaviour import Expectation, ModelMisbehaviour, excerpt
from agents.models.language_model import LanguageModel, MeteredModel
from agents.models.prompt import ATTEMPT, Material, Step
from bus_schema.runs import Misbehaviour, MisbehaviourKind

Report = Callable[[str], Awaitable[None]]
ReportMisbehaviour = Callable[[Misbehaviour], Awaitable[None]]
# How often a text is gone on with that a limit or a silence has cut off.
_MOST_BREAKS = 4
TAIL_CHARS = 300


async def ignore(_misbehaviour: Misbehaviour) -> None:
    """For who does not want to hear of it."""


class LoopState(TypedDict, total=False):
    """State in a checkpoint: the text and its cost, never the input material, which can be fetched again.

    `partial` is a text that was cut off, so many `breaks` in a row; `problem` the kind, reason and words of an answer
    that is no result. Where the card `asks` whether the output is content with what it judges, `is_content` says so.
    """

    fingerprint: str
    last: Literal[Step, "judge"]
    text: str
    partial: str
    breaks: int
    problem: list[str]
    remarks: list[str]
    satisfied: bool
    recalled: list[str]
    rounds: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    took_ms: int
    asks: bool
    is_content: bool


# Nothing is left of breaks and problems.
WHOLE: LoopState = {"partial": "", "breaks": 0, "problem": []}


async def broken(
    work: "LoopWork", state: LoopState, step: Step, generated: GeneratedText | None, cost: "CallCost"
) -> LoopState:
    """The state after a call that gave no whole text: to be gone on with, unless that is hopeless."""
    if generated is None:
        await work.tell(MisbehaviourKind.REFUSAL, step, "")
        return with_problem(work, state, ModelMisbehaviour(MisbehaviourKind.REFUSAL, "declined to answer"), cost)
    breaks = state.get("breaks", 0)
    is_endless = generated.broken_by is MisbehaviourKind.ENDLESS
    if generated.broken_by is not None and not is_endless:
        breaks += 1
        await work.tell(generated.broken_by, step, generated.raw[-TAIL_CHARS:])
    if is_endless or breaks > _MOST_BREAKS:
        await work.tell(MisbehaviourKind.ENDLESS, step, generated.raw[-TAIL_CHARS:])
        endless = ModelMisbehaviour(
            MisbehaviourKind.ENDLESS, f"did not come to an end in {breaks} answers", generated.raw
        )
        return with_problem(work, state, endless, cost)
    return {"last": step, "partial": generated.raw, "breaks": breaks, **work.added(state, cost)}


def with_problem(work: "LoopWork", state: LoopState, problem: ModelMisbehaviour, cost: "CallCost") -> LoopState:
    told = [problem.kind.value, problem.detail, excerpt(problem.text)]
    return {**WHOLE, "last": "write", "problem": told, **work.added(state, cost)}


@dataclass(frozen=True)
class LoopWork:
    """Assignment and model of one run of the loop, for its nodes."""

    model: LanguageModel
    assignment: Assignment
    report: Report
    report_misbehaviour: ReportMisbehaviour
    expectation: Expectation
    until: float | None

    async def misbehaviour_in(self, text: str, step: Step) -> ModelMisbehaviour | None:
        """The reason why a text is no result, if there is one; it is reported."""
        try:
            self.expectation.check(text)
        except ModelMisbehaviour as misbehaviour:
            await self.tell(misbehaviour.kind, step, text)
            return misbehaviour
        return None

    async def tell(self, kind: MisbehaviourKind, step: Step, words: str) -> None:
        attempt, name = self.assignment.order.attempt, self.model.name[:200]
        misbehaviour = Misbehaviour(attempt=attempt, kind=kind, call=step, model_name=name, words=excerpt(words))
        await self.report_misbehaviour(misbehaviour)

    def added(self, state: LoopState, cost: "CallCost") -> LoopState:
        """Cost so far, with all units of memory that were ever shown: another attempt may be shown others."""
        shown = (each.id for each in self.assignment.memory)
        return {"recalled": list(dict.fromkeys([*state.get("recalled", ()), *shown])), **_spent(state, cost)}

    def attempt(self, state: LoopState) -> Material:
        return Material(ATTEMPT, self.assignment.order.produces, state["text"])


class CallCost:
    """Model calls, tokens and time of a block."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = MeteredModel(model)
        self.took_ms = 0

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_exc: object) -> Literal[False]:
        self.took_ms = round((time.monotonic() - self._began) * 1000)
        return False


def _spent(thought: LoopState, cost: CallCost) -> LoopState:
    return {
        "calls": thought.get("calls", 0) + cost.model.calls,
        "prompt_tokens": thought.get("prompt_tokens", 0) + cost.model.usage.prompt_tokens,
        "completion_tokens": thought.get("completion_tokens", 0) + cost.model.usage.completion_tokens,
        "took_ms": thought.get("took_ms", 0) + cost.took_ms,
    }

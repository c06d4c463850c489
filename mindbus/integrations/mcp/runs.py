"""MCP tools of process runs: a tool for each card, and tools to watch and steer what runs."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import Parameter as Argument
from inspect import Signature
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from bus_schema.cards import BRIEF, CardHead, Parameter
from bus_schema.ids import mint
from bus_schema.process import CancelProcess, GetProcess, ListProcesses, StartProcess
from bus_schema.run_control import ApproveStep, RejectStep
from bus_schema.runs import Run, RunStatus, StepStatus
from mindbus.integrations.mcp.participant import Participant, ParticipantOf

CARD_TOOL = "run_"
_OVER = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})
_DONE = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})
_LOOK_S = 0.5
_TYPES: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}

RunId = Annotated[str, Field(description="Such as run_0192….")]


class StepState(BaseModel):
    """A step of a run; if it is `waiting` for a person, use process_answer."""

    id: str
    role: str
    status: StepStatus
    artifact_id: str | None = None
    reason: str = ""


class RunState(BaseModel):
    """A run as it stands; read its result with artifact_read."""

    run_id: str
    card: str
    status: RunStatus
    result: str | None
    reason: str
    steps: list[StepState]

    @classmethod
    def of(cls, run: Run) -> "RunState":
        steps = [
            StepState(
                id=step.step_id,
                role=step.role,
                status=step.status,
                artifact_id=step.artifact and step.artifact.artifact_id,
                reason=step.reason,
            )
            for step in run.steps_in_order
        ]
        result = run.result and run.result.artifact_id
        return cls(
            run_id=run.run_id, card=run.card_name, status=run.status, result=result, reason=run.reason, steps=steps
        )


class RunTools:
    """Runs that one may see: one's own, for operators all."""

    def __init__(self, participant_of: ParticipantOf) -> None:
        self._of = participant_of

    async def process_list(
        self,
        context: Context[Any, Any],
        status: RunStatus | None = None,
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
    ) -> list[RunState]:
        """List the runs of your processes, the newest first."""
        page = await self._of(context).bus.request(ListProcesses(status=status, limit=limit))
        return [RunState.of(run) for run in page.items]

    async def process_status(
        self,
        context: Context[Any, Any],
        run_id: RunId,
        wait_s: Annotated[float, Field(ge=0, le=600, description="Wait at most this many seconds for its end.")] = 0,
    ) -> RunState:
        """Show how far a run has got; with wait_s, wait for its end or for a question to a person."""
        return RunState.of(await _watched(context, self._of(context), run_id, wait_s))

    async def process_answer(
        self,
        context: Context[Any, Any],
        run_id: RunId,
        step: Annotated[str, Field(description="The step that waits for a person.")],
        answer: Literal["approve", "reject"],
        note: Annotated[str, Field(max_length=2000, description="What to say about it.")] = "",
    ) -> RunState:
        """Approve or reject a run's step that waits for a person. Ask the person first."""
        kind = ApproveStep if answer == "approve" else RejectStep
        command = kind(run_id=run_id, step_id=step, note=note)
        return RunState.of(await self._of(context).bus.request(command, trace=run_id))

    async def process_cancel(self, context: Context[Any, Any], run_id: RunId, reason: str = "") -> RunState:
        """Cancel a run."""
        command = CancelProcess(run_id=run_id, reason=reason)
        return RunState.of(await self._of(context).bus.request(command, trace=run_id))

    def start_of(self, card: CardHead) -> Callable[..., Awaitable[RunState]]:
        """The tool that starts runs of a card: its arguments are a brief and the card's parameters."""

        async def start(context: Context[Any, Any], brief: str, wait_s: float, **given: Any) -> RunState:
            participant = self._of(context)
            run_id = mint("run")
            params = {name: _as_text(value) for name, value in given.items() if value is not None}
            async with participant.artifacts() as artifacts:
                put = await artifacts.put(
                    brief.encode(), artifact_type=BRIEF, trace=run_id, content_type="text/markdown"
                )
            command = StartProcess(run_id=run_id, card_name=card.name, inputs=(put.ref,), params=params)
            await participant.bus.request(command, trace=run_id)
            return RunState.of(await _watched(context, participant, run_id, wait_s))

        start.__signature__ = _signature_of(card)  # type: ignore[attr-defined]  # what `inspect` looks for first
        start.__doc__ = f"Have a team of agents do this: {card.description or card.name}"
        return start


async def _watched(context: Context[Any, Any], participant: Participant, run_id: str, wait_s: float) -> Run:
    """The run at its end, at a question to a person, or after `wait_s` seconds; its progress is told meanwhile."""
    told_steps = -1
    try:
        async with asyncio.timeout(wait_s):
            while True:
                run = await participant.bus.request(GetProcess(run_id=run_id), trace=run_id)
                done = sum(step.status in _DONE for step in run.steps)
                if done != told_steps:
                    told_steps = done
                    await context.report_progress(done, len(run.steps), f"{done} of {len(run.steps)} steps are done")
                if run.status in _OVER or any(step.status is StepStatus.WAITING for step in run.steps):
                    return run
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        return await participant.bus.request(GetProcess(run_id=run_id), trace=run_id)


def _signature_of(card: CardHead) -> Signature:
    wait = Field(ge=0, le=600, description="Wait at most this many seconds for its end.")
    arguments = [
        Argument("context", Argument.KEYWORD_ONLY, annotation=Context[Any, Any]),
        Argument(BRIEF, Argument.KEYWORD_ONLY, annotation=Annotated[str, Field(min_length=1, description="The task.")]),
        Argument("wait_s", Argument.KEYWORD_ONLY, annotation=Annotated[float, wait], default=0.0),
    ]
    taken = {argument.name for argument in arguments}
    own = [_argument(name, each) for name, each in card.parameters.items() if name not in taken]
    return Signature([*arguments, *own], return_annotation=RunState)


def _argument(name: str, parameter: Parameter) -> Argument:
    kind: Any = Literal[parameter.choices] if parameter.choices else _TYPES[parameter.type]
    annotation = Annotated[kind, Field(description=parameter.description)]
    if parameter.default is None:
        return Argument(name, Argument.KEYWORD_ONLY, annotation=annotation)
    return Argument(name, Argument.KEYWORD_ONLY, annotation=annotation, default=parameter.default)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

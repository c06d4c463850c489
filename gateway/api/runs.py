"""Process runs over HTTP: start, list, inspect, steer."""

from collections.abc import Sequence
from typing import Annotated, Self

import yaml
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from bus_schema.artifacts import ArtifactRef, StepId
from bus_schema.cards import BRIEF, Card, CardName, Parameter
from bus_schema.ids import mint
from bus_schema.process import CancelProcess, ListProcesses, RunPage, StartProcess
from bus_schema.run_control import (
    ApproveStep,
    CostGroup,
    Costs,
    GetCosts,
    PauseProcess,
    RejectStep,
    RerunProcess,
    ResumeProcess,
    RetryProcess,
)
from bus_schema.runs import Run, RunId, RunStatus
from config.shipped import shipped_file, shipped_names
from gateway.backend import Backend, BackendDependency, Cursor
from mindbus.sdk.errors import ArtifactRejected, StorageAway
from mindbus.sdk.steps import replace_output
from mindbus.sdk.transfers import NewArtifact, PutOptions

router = APIRouter(tags=["runs"])

_BRIEF_CONTENT_TYPE = "text/markdown"
# Cards within cards, as many levels as a run allows.
_DEEPEST = 5


class StartRunRequest(BaseModel):
    """A run to start; a request repeated with the same `run_id`, `run_…`, starts it only once."""

    model_config = ConfigDict(extra="forbid")
    card_name: CardName | None = None
    card: Card | None = None
    briefs: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=20)
    params: dict[str, str] = Field(default={}, max_length=50)
    run_id: RunId | None = None

    @model_validator(mode="after")
    def _names_one_card(self) -> Self:
        if (self.card is None) == (self.card_name is None):
            raise ValueError("give either a card or the card_name of a shipped one")
        return self


class CancelRunRequest(BaseModel):
    """Reason for a cancellation or a pause; it is recorded with the run."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(default="", max_length=1000)


class RetryRunRequest(BaseModel):
    """Step to redo; without one, whatever failed is tried again."""

    model_config = ConfigDict(extra="forbid")
    from_step: StepId | None = None


class RerunRequest(BaseModel):
    """Parameters that differ from those of the earlier run."""

    model_config = ConfigDict(extra="forbid")
    params: dict[str, str] = Field(default={}, max_length=50)
    run_id: RunId | None = None


class ApprovalNote(BaseModel):
    """A person's comment on something that they approve or reject."""

    model_config = ConfigDict(extra="forbid")
    note: str = Field(default="", max_length=2000)


class StepOutput(BaseModel):
    """Markdown text that replaces a step's output."""

    model_config = ConfigDict(extra="forbid")
    text: str = Field(min_length=1, max_length=1024 * 1024)


@router.get("/runs")
async def runs(
    backend: BackendDependency,
    status: RunStatus | None = None,
    card: CardName | None = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> RunPage:
    """Runs, newest first."""
    return await backend.bus.request(ListProcesses(status=status, card=card, cursor=cursor, limit=limit))


@router.post("/runs", status_code=201)
async def start(request: StartRunRequest, response: Response, backend: BackendDependency) -> Run:
    """Register the briefs and start the run."""
    started = await start_run(backend, request)
    response.headers["Location"] = f"/api/runs/{started.run_id}"
    return started


@router.get("/runs/{run_id}")
async def run(run_id: RunId, backend: BackendDependency) -> Run:
    """One run with its steps."""
    return await backend.run(run_id)


@router.post("/runs/{run_id}/cancel")
async def cancel(run_id: RunId, backend: BackendDependency, why: CancelRunRequest | None = None) -> Run:
    """Start no further step and ignore late results."""
    return await backend.bus.request(CancelProcess(run_id=run_id, reason=why.reason if why else ""), trace=run_id)


@router.get("/runs/{run_id}/cost")
async def cost(run_id: RunId, backend: BackendDependency) -> Costs:
    """Tokens, calls, seconds and price of each step."""
    return await backend.bus.request(GetCosts(run_id=run_id, by="step"), trace=run_id)


@router.get("/costs")
async def costs(backend: BackendDependency, by: CostGroup = "run", since: AwareDatetime | None = None) -> Costs:
    """Tokens, calls, seconds and price of the runs that you may see."""
    return await backend.bus.request(GetCosts(by=by, since=since))


@router.post("/runs/{run_id}/pause")
async def pause(run_id: RunId, backend: BackendDependency, why: CancelRunRequest | None = None) -> Run:
    """Start no further step; results of those under way are still accepted."""
    return await backend.bus.request(PauseProcess(run_id=run_id, reason=why.reason if why else ""), trace=run_id)


@router.post("/runs/{run_id}/resume")
async def resume(run_id: RunId, backend: BackendDependency) -> Run:
    """Resume a paused run."""
    return await backend.bus.request(ResumeProcess(run_id=run_id), trace=run_id)


@router.post("/runs/{run_id}/retry")
async def retry(run_id: RunId, backend: BackendDependency, what: RetryRunRequest | None = None) -> Run:
    """Continue from what failed, or redo a step and everything made from it; other outputs are reused."""
    return await backend.bus.request(RetryProcess(run_id=run_id, from_step=what and what.from_step), trace=run_id)


@router.post("/runs/{run_id}/rerun", status_code=201)
async def rerun(run_id: RunId, request: RerunRequest, response: Response, backend: BackendDependency) -> Run:
    """Start a new run with the same card and inputs; parameters that you give replace the earlier ones."""
    started = await start_again(backend, run_id, request)
    response.headers["Location"] = f"/api/runs/{started.run_id}"
    return started


@router.post("/runs/{run_id}/steps/{step_id}/approve")
async def approve(
    run_id: RunId, step_id: StepId, backend: BackendDependency, answer: ApprovalNote | None = None
) -> Run:
    """Approve a step that waits for a person."""
    note = answer.note if answer else ""
    return await backend.bus.request(ApproveStep(run_id=run_id, step_id=step_id, note=note), trace=run_id)


@router.post("/runs/{run_id}/steps/{step_id}/reject")
async def reject(run_id: RunId, step_id: StepId, backend: BackendDependency, answer: ApprovalNote | None = None) -> Run:
    """Reject a step that waits for a person; a loop repeats once more, otherwise the step fails."""
    note = answer.note if answer else ""
    return await backend.bus.request(RejectStep(run_id=run_id, step_id=step_id, note=note), trace=run_id)


@router.put("/runs/{run_id}/steps/{step_id}/output")
async def replace(run_id: RunId, step_id: StepId, output: StepOutput, backend: BackendDependency) -> Run:
    """Replace a step's output with a text, as a new version; what was made from the old one is redone."""
    async with backend.own_artifacts() as artifacts:
        return await replace_output(backend.bus, artifacts, run_id, step_id, output.text)


@router.get("/cards")
async def cards() -> list[str]:
    """Names of the shipped process cards."""
    return list(card_names())


def parameters_of(card_name: str, depth: int = 0) -> dict[str, Parameter]:
    """Parameters that a card and the cards among its steps ask for, by name; of one name, the outer card's."""
    card = Card.model_validate(yaml.safe_load(shipped_file("cards", card_name)))
    inner: dict[str, Parameter] = {}
    for step in card.steps:
        # A circle of cards is refused when the run is started.
        if step.card is not None and depth < _DEEPEST and step.card in card_names():
            inner |= parameters_of(step.card, depth + 1)
    return inner | card.parameters


def card_names() -> tuple[str, ...]:
    """Names of the shipped process cards, sorted."""
    return shipped_names("cards")


async def start_run(backend: Backend, request: StartRunRequest) -> Run:
    """Register the briefs under the run's trace, then start it. Raises StorageAway, ArtifactRejected, ReplyError."""
    run_id = request.run_id or mint("run")
    inputs = await _register(backend, run_id, request.briefs)
    fields = {"card": request.card, "card_name": request.card_name, "params": request.params}
    await backend.bus.request(StartProcess(run_id=run_id, inputs=tuple(inputs), **fields), trace=run_id)
    return await backend.run(run_id)


async def start_again(backend: Backend, run_id: str, request: RerunRequest) -> Run:
    """A new run of an earlier one's card and inputs. Raises ReplyError."""
    new = request.run_id or mint("run")
    await backend.bus.request(RerunProcess(run_id=new, of_run=run_id, params=request.params), trace=new)
    return await backend.run(new)


async def _register(backend: Backend, run_id: str, briefs: Sequence[str]) -> list[ArtifactRef]:
    about: PutOptions = {"artifact_type": BRIEF, "trace": run_id, "content_type": _BRIEF_CONTENT_TYPE}
    # The id follows from the run and the position, so that a repeated start finds its briefs again.
    named = ((f"art_{run_id.removeprefix('run_')[:60]}-{number}", brief) for number, brief in enumerate(briefs))
    new: list[NewArtifact] = [{**about, "source": brief.encode(), "artifact_id": name} for name, brief in named]
    refs = []
    async with backend.own_artifacts() as artifacts:
        puts = await artifacts.put_all(new)
    for put in puts:
        if isinstance(put, ArtifactRejected):
            raise put
        if put.is_pending:
            raise StorageAway
        refs.append(put.ref)
    return refs

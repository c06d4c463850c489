"""Process runs over HTTP: start, list, inspect, cancel."""

from collections.abc import Sequence
from typing import Annotated, Self

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import BRIEF, Card, CardName
from bus_schema.ids import mint
from bus_schema.process import CancelProcess, ListProcesses, RunPage, StartProcess
from bus_schema.runs import Run, RunId, RunStatus
from config.shipped import shipped_names
from gateway.backend import Backend, BackendDependency, Cursor
from mindbus.sdk.errors import ArtifactRejected, StorageAway
from mindbus.sdk.transfers import NewArtifact, PutOptions

router = APIRouter(tags=["runs"])

_BRIEF_CONTENT_TYPE = "text/markdown"


class StartRunRequest(BaseModel):
    """A run to start; a request repeated under the same `run_id`, `run_…`, starts it once."""

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
    """Reason of a cancellation, for the record."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(default="", max_length=1000)


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


@router.get("/cards")
async def cards() -> list[str]:
    """Names of the shipped process cards."""
    return list(card_names())


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

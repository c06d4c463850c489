"""Process runs, over HTTP."""

from typing import Annotated, Self

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bus_schema.ids import mint
from bus_schema.process import Card, CardName, Run, RunId, RunPage, RunStatus
from gateway.api.dependencies import Desk
from gateway.desks.runs import RunRequest

router = APIRouter(tags=["runs"])


class StartRunRequest(BaseModel):
    """A run to be started; with an id of one's own, `run_…`, it can be asked for again and is one run."""

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
    """For the record."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(default="", max_length=1000)


@router.get("/runs")
async def runs(
    desk: Desk,
    status: RunStatus | None = None,
    card: CardName | None = None,
    cursor: Annotated[str | None, Query(max_length=256)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> RunPage:
    """Runs, newest first."""
    return await desk.runs(status, card, cursor, limit)


@router.post("/runs", status_code=201)
async def start(wanted: StartRunRequest, response: Response, desk: Desk) -> Run:
    """Register the briefs, start the run."""
    order = RunRequest(wanted.briefs, wanted.card_name, wanted.card, wanted.params, wanted.run_id or mint("run"))
    response.headers["Location"] = f"/api/runs/{order.run_id}"
    return await desk.start_run(order)


@router.get("/runs/{run_id}")
async def run(run_id: RunId, desk: Desk) -> Run:
    """One run with its steps."""
    return await desk.run(run_id)


@router.post("/runs/{run_id}/cancel")
async def cancel(run_id: RunId, desk: Desk, why: CancelRunRequest | None = None) -> Run:
    """Send no further step; late results are ignored."""
    return await desk.cancel_run(run_id, why.reason if why else "")


@router.get("/cards")
async def cards(desk: Desk) -> list[str]:
    """The cards that come with MindBus."""
    return list(desk.cards())

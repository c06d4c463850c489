"""The simulation, over HTTP."""

from fastapi import APIRouter
from pydantic import BaseModel

from bus_schema.sim import SimCounts, SimState, Simulation, StartSim, StopSim
from gateway.api.dependencies import Desk

router = APIRouter(tags=["sim"])


class SimChoices(BaseModel):
    """What a simulation can be started with."""

    profiles: list[str]
    scenarios: list[str]


@router.get("/sim")
async def status(desk: Desk) -> SimState:
    """What runs, or ran last."""
    return await desk.sim_status()


@router.get("/sim/choices")
async def choices(desk: Desk) -> SimChoices:
    """The teams, the scenarios that there are."""
    return SimChoices(profiles=list(desk.sim_teams()), scenarios=list(desk.sim_scenarios()))


@router.post("/sim/start")
async def start(wanted: StartSim, desk: Desk) -> Simulation:
    """Let a team of simulated people talk."""
    return await desk.sim_start(wanted)


@router.post("/sim/stop")
async def stop(desk: Desk, wanted: StopSim | None = None) -> SimCounts:
    """Let nobody say anything more."""
    return await desk.sim_stop(wanted.sim_id if wanted else None)

"""The simulation over HTTP: status, choices, start, stop."""

from fastapi import APIRouter
from pydantic import BaseModel

from bus_schema.sim import GetSimStatus, SimCounts, SimState, Simulation, StartSim, StopSim
from config.shipped import shipped_names
from gateway.backend import BackendDependency

router = APIRouter(tags=["sim"])


class SimChoices(BaseModel):
    """Names of the shipped teams and scenarios."""

    profiles: list[str]
    scenarios: list[str]


@router.get("/sim")
async def status(backend: BackendDependency) -> SimState:
    """State of the current or last simulation."""
    return await backend.bus.request(GetSimStatus())


@router.get("/sim/choices")
async def choices() -> SimChoices:
    """Teams and scenarios that a simulation can be started with."""
    return SimChoices(profiles=list(team_names()), scenarios=list(shipped_names("sim/scenarios")))


@router.post("/sim/start")
async def start(command: StartSim, backend: BackendDependency) -> Simulation:
    """Start a simulation."""
    return await backend.bus.request(command)


@router.post("/sim/stop")
async def stop(backend: BackendDependency, command: StopSim | None = None) -> SimCounts:
    """Stop a simulation."""
    return await backend.bus.request(command or StopSim())


def team_names() -> tuple[str, ...]:
    """Names of the shipped teams, sorted."""
    return shipped_names("sim/profiles")

"""The simulation's controls."""

from agents.sim.scenarios import scenario_names
from agents.sim.teams import team_names
from bus_schema.sim import GetSimStatus, SimCounts, SimState, Simulation, StartSim, StopSim
from mindbus.bus.client import Client


class SimDesk:
    """Starts, stops, looks."""

    bus: Client

    async def sim_start(self, start: StartSim) -> Simulation:
        """Let a team talk."""
        return await self.bus.request(start)

    async def sim_stop(self, sim_id: str | None = None) -> SimCounts:
        """Let nobody say anything more."""
        return await self.bus.request(StopSim(sim_id=sim_id))

    async def sim_status(self) -> SimState:
        """What runs, or ran last."""
        return await self.bus.request(GetSimStatus())

    def sim_teams(self) -> tuple[str, ...]:
        """The teams that come with MindBus."""
        return team_names()

    def sim_scenarios(self) -> tuple[str, ...]:
        """The scenarios that come with MindBus."""
        return scenario_names()

"""Commands and events of the simulation."""

from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from bus_schema.messages import Command, Event, Query, Value

SimId = Annotated[str, StringConstraints(pattern=r"^sim_[A-Za-z0-9_-]{1,64}$")]
SimFile = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
MAX_SIM_MESSAGES = 100_000


class Simulation(Value):
    """The simulation that was started."""

    sim_id: SimId


class StartSim(Command[Simulation], domain="sim", action="start"):
    """Make simulated people talk according to a scenario; `speed` is a factor of real time.

    The same profiles, scenario and seed produce the same words. Without a limit, they go on until stopped. Quiet hours
    of simulated people are in simulated time, which begins at `starts_at`, by default at nine in the morning.
    """

    profiles: SimFile
    scenario: SimFile | None = None
    speed: float = Field(default=1, ge=0.01, le=100_000)
    seed: int = Field(default=0, ge=0, lt=2**63)
    limit: int | None = Field(default=None, ge=1, le=MAX_SIM_MESSAGES)
    starts_at: AwareDatetime | None = None


class SimCounts(Value):
    """Counts of a simulation; a message counts once the dialogue has answered it."""

    sim_id: SimId
    sent: int = Field(ge=0)
    answered: int = Field(ge=0)
    failed: int = Field(ge=0)


class StopSim(Command[SimCounts], domain="sim", action="stop"):
    """Stop sending messages; those already sent are still answered."""

    sim_id: SimId | None = None


class SimState(Value):
    """The running simulation, or the last one; no counts if none has run."""

    is_running: bool = False
    profiles: SimFile | None = None
    scenario: SimFile | None = None
    speed: float | None = None
    seed: int | None = None
    limit: int | None = None
    starts_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    counts: SimCounts | None = None


class GetSimStatus(Query[SimState], domain="sim", action="status"):
    """Read the state of the simulation."""


class SimStarted(Event, topic="sim", name="started"):
    """A simulation has started; its messages arrive like those of people."""

    sim_id: SimId
    profiles: SimFile
    scenario: SimFile
    speed: float
    seed: int
    limit: int | None = None
    starts_at: AwareDatetime | None = None


class SimStopped(Event, topic="sim", name="stopped"):
    """A simulation has ended: it was stopped, or its scenario is complete."""

    counts: SimCounts
    reason: str

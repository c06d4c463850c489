"""The teams and scenarios of simulations, as far as screens show them."""

from collections.abc import Sequence

import yaml
from pydantic import BaseModel, ConfigDict

from bus_schema.identities import UserId
from config.shipped import shipped_file, shipped_names

_TEAMS, _SCENARIOS = "sim/profiles", "sim/scenarios"


class TeamMember(BaseModel):
    """A simulated person."""

    model_config = ConfigDict(frozen=True)
    user_id: UserId
    name: str
    role: str
    character: str
    responsibility: tuple[str, ...]


class ShippedTeam(BaseModel):
    """Simulated people with the name of their scenario."""

    model_config = ConfigDict(frozen=True)
    name: str
    scenario: str
    people: tuple[TeamMember, ...]

    def responsible_for(self, areas: Sequence[str]) -> list[TeamMember]:
        """People with at least one of these responsibilities."""
        return [person for person in self.people if set(person.responsibility) & set(areas)]


class ScenarioEvent(BaseModel):
    """An event of the outside world; the people responsible for its areas talk about it."""

    model_config = ConfigDict(frozen=True)
    id: str
    areas: tuple[str, ...]


class ShippedScenario(BaseModel):
    """The events of a simulation."""

    model_config = ConfigDict(frozen=True)
    triggers: tuple[ScenarioEvent, ...]


def shipped_team(name: str) -> ShippedTeam:
    """The team of this name, else the first one."""
    names = shipped_names(_TEAMS)
    return ShippedTeam.model_validate(yaml.safe_load(shipped_file(_TEAMS, name if name in names else names[0])))


def shipped_scenario(name: str) -> ShippedScenario:
    """Raises FileNotFoundError."""
    return ShippedScenario.model_validate(yaml.safe_load(shipped_file(_SCENARIOS, name)))


def simulated_names() -> dict[str, str]:
    """Names of all simulated people, by user id."""
    teams = (shipped_team(name) for name in shipped_names(_TEAMS))
    return {person.user_id: person.name for team in teams for person in team.people}

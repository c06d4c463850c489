"""Teams and scenarios: those of the user's own folder, then those that come with MindBus."""

from pathlib import Path

from agents.sim.profiles import Team, UnknownTeam, parse_team, shipped_team, team_names
from agents.sim.scenarios import Scenario, UnknownScenario, parse_scenario, scenario_names, shipped_scenario


class Library:
    """Looks a name up; names are plain words, so that they lead nowhere else."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def team(self, name: str) -> Team:
        """Raises UnknownTeam, BadTeam."""
        own = self._own("profiles", name)
        if own is not None:
            return parse_team(own.read_bytes(), str(own))
        if name not in team_names():
            raise UnknownTeam(name, self.team_names)
        return shipped_team(name)

    def scenario(self, name: str) -> Scenario:
        """Raises UnknownScenario, BadScenario."""
        own = self._own("scenarios", name)
        if own is not None:
            return parse_scenario(own.read_bytes(), str(own))
        if name not in scenario_names():
            raise UnknownScenario(name, self.scenario_names)
        return shipped_scenario(name)

    @property
    def team_names(self) -> tuple[str, ...]:
        """Every team there is."""
        return self._names("profiles", team_names())

    @property
    def scenario_names(self) -> tuple[str, ...]:
        """Every scenario there is."""
        return self._names("scenarios", scenario_names())

    def _own(self, kind: str, name: str) -> Path | None:
        if self._folder is None:
            return None
        file = self._folder / kind / f"{name}.yaml"
        return file if file.is_file() else None

    def _names(self, kind: str, shipped: tuple[str, ...]) -> tuple[str, ...]:
        own = (file.stem for file in (self._folder / kind).glob("*.yaml")) if self._folder else ()
        return tuple(sorted({*own, *shipped}))

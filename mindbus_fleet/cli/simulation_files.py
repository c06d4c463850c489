"""Profiles and scenarios of simulations: listed and validated."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel

from agents.configuration.validation import InvalidFile, read_document
from agents.sim.generator import AnotherLanguage, MessageGenerator, NobodyResponsible
from agents.sim.scenarios import Scenario, SimLibrary, UnknownScenario, parse_scenario
from agents.sim.teams import Team, parse_team
from mindbus.cli.errors import UsageError

ListedT = TypeVar("ListedT", bound="Listed")
PartT = TypeVar("PartT", Team, Scenario)


class Listed(BaseModel):
    """Something in the library; one that cannot be used says why."""

    name: str
    language: str = ""
    description: str = ""
    problem: str | None = None


class ListedTeam(Listed):
    """A team, by the number of its people."""

    people: int = 0
    scenario: str = ""


class ListedScenario(Listed):
    """A scenario, by the number of its events."""

    triggers: int = 0


class FileProblem(BaseModel):
    """One thing that is wrong with a file."""

    file: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.field}: {self.message}"


class FileReport(BaseModel):
    """A file, with all that is wrong with it."""

    file: str
    kind: Literal["team", "scenario", "neither"]
    problems: list[FileProblem] = []


def teams_of(library: SimLibrary) -> list[ListedTeam]:
    """Every team, those of no use as well."""
    return _listed(
        ListedTeam, library.team_names, library.team, lambda t: {"people": len(t.people), "scenario": t.scenario}
    )


def scenarios_of(library: SimLibrary) -> list[ListedScenario]:
    """Every scenario, those of no use as well."""
    return _listed(ListedScenario, library.scenario_names, library.scenario, lambda s: {"triggers": len(s.triggers)})


def check_file(file: Path, library: SimLibrary) -> FileReport:
    """All that is wrong with a team or a scenario; a team must be able to play what it names. Raises UsageError."""
    try:
        text = file.read_bytes()
    except OSError as unreadable:
        raise UsageError(f"{file} cannot be read: {unreadable.strerror}") from unreadable
    report = FileReport(file=str(file), kind="neither")
    try:
        value = read_document(text, str(file)).value
        document = value if isinstance(value, dict) else {}
        if "people" in document:
            report.kind = "team"
            team = parse_team(text, str(file))
            report.problems += _of_playing(team, str(file), library)
        elif "triggers" in document:
            report.kind = "scenario"
            parse_scenario(text, str(file))
        else:
            message = "is neither a team, which has `people`, nor a scenario, which has `triggers`"
            report.problems.append(FileProblem(file=str(file), line=None, field="file", message=message))
    except InvalidFile as bad:
        report.problems += [
            FileProblem(file=each.source, line=each.line, field=each.field, message=each.message)
            for each in bad.problems
        ]
    return report


def _of_playing(team: Team, source: str, library: SimLibrary) -> Iterable[FileProblem]:
    try:
        MessageGenerator(team, library.scenario(team.scenario), seed=0)
    except InvalidFile as bad:
        message = f"the scenario {team.scenario!r} cannot be used: {bad}"
    except (UnknownScenario, AnotherLanguage, NobodyResponsible) as no:
        message = str(no)
    else:
        return
    yield FileProblem(file=source, line=None, field="scenario", message=message)


def _listed(
    kind: type[ListedT], names: Iterable[str], read: Callable[[str], PartT], more: Callable[[PartT], dict[str, object]]
) -> list[ListedT]:
    listed = []
    for name in names:
        try:
            part = read(name)
        except InvalidFile as bad:
            listed.append(kind(name=name, problem=f"cannot be used: {bad.problems[0]}"))
        else:
            fields = {"name": name, "language": part.language, "description": part.description.strip()}
            listed.append(kind.model_validate(fields | more(part)))
    return listed

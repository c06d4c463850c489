"""Simulated teams, from YAML."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.validation import InvalidFile, UnknownFile, YamlProblem, read_file
from agents.people import Person
from agents.sim.templates import Gender, Template
from bus_schema.identities import UserId
from bus_schema.replies import Code
from bus_schema.sim import SimFile

Language = Literal["ru", "en"]
Feeling = Literal["glad", "upset", "calm"]


class Profile(BaseModel):
    """A simulated person (spec 004 §7.3): role, character, responsibility, and how all of that sounds."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    user_id: UserId
    name: str = Field(min_length=1, max_length=60)
    names: tuple[str, ...] = ()
    gender: Gender
    role: str = Field(min_length=1, max_length=200)
    character: str = Field(min_length=1, max_length=500)
    responsibility: tuple[str, ...] = Field(min_length=1, max_length=20)
    openings: tuple[Template, ...] = Field(min_length=1)
    glad: tuple[Template, ...] = Field(min_length=1)
    upset: tuple[Template, ...] = Field(min_length=1)
    calm: tuple[Template, ...] = Field(min_length=1)
    closings: tuple[Template, ...] = Field(min_length=1)

    def feels(self, feeling: Feeling) -> tuple[Template, ...]:
        return {"glad": self.glad, "upset": self.upset, "calm": self.calm}[feeling]


class Team(BaseModel):
    """Simulated people who know each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: SimFile
    language: Language
    description: str = Field(default="", max_length=1000)
    scenario: SimFile
    people: tuple[Profile, ...] = Field(min_length=1, max_length=100)

    def responsible_for(self, areas: tuple[str, ...]) -> tuple[Profile, ...]:
        return tuple(person for person in self.people if set(person.responsibility) & set(areas))

    @property
    def persons(self) -> tuple[Person, ...]:
        """The team as agents know it who keep track of people."""
        return tuple(Person(each.user_id, (each.name, *each.names)) for each in self.people)


class InvalidTeam(InvalidFile):
    """These people cannot be simulated; each line says where, what is wrong, what to do."""


class UnknownTeam(UnknownFile, code=Code.NOT_FOUND):
    """There is no such team; add a file to config/sim/profiles."""

    kind = "team"


def parse_team(text: bytes, source: str) -> Team:
    """Read a team from YAML; errors name it `source`. Raises InvalidTeam with every problem."""
    team = read_file(text, source, Team, InvalidTeam)
    ids = [person.user_id for person in team.people]
    doubles = [
        YamlProblem(source, None, ("people", at, "user_id"), f"{user_id!r} is taken; give everybody an id of their own")
        for at, user_id in enumerate(ids)
        if user_id in ids[:at]
    ]
    if doubles:
        raise InvalidTeam(doubles)
    return team

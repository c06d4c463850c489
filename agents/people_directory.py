"""Who is who, for agents that hear people speak of each other."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.validation import InvalidFile, read_file
from agents.people import KnownPeople, Person
from agents.sim.teams import shipped_team, team_names
from bus_schema.identities import UserId


class KnownPerson(BaseModel):
    """One entry of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    user_id: UserId
    names: tuple[str, ...] = Field(min_length=1, max_length=20)


class PeopleFile(BaseModel):
    """Everybody whose names are known."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    people: tuple[KnownPerson, ...] = Field(min_length=1, max_length=10_000)


class InvalidPeopleFile(InvalidFile):
    """It is not clear who is who; each line says where, what is wrong, what to do."""


class PeopleDirectory:
    """Those of the file are known at any time, simulated people only once they have been heard."""

    def __init__(self, known: Iterable[Person] = (), simulated: Iterable[Person] = ()) -> None:
        self._known, self._simulated = tuple(known), {person.user_id: person for person in simulated}
        self._people = lru_cache(maxsize=64)(self._those_of)

    def people(self, heard: Collection[str]) -> KnownPeople:
        """Everybody who is known by now."""
        return self._people(frozenset(heard).intersection(self._simulated))

    def having_heard(self, heard: tuple[str, ...], user_id: str) -> tuple[str, ...]:
        """Those to remember as heard, after this user."""
        is_news = user_id in self._simulated and user_id not in heard
        return (*heard, user_id) if is_news else heard

    def _those_of(self, heard: frozenset[str]) -> KnownPeople:
        return KnownPeople((*self._known, *(self._simulated[user_id] for user_id in sorted(heard))))


def open_people_directory(file: str | None) -> PeopleDirectory:
    """Those of a YAML file, besides the teams that come with MindBus. Raises InvalidPeopleFile, OSError."""
    known: Iterable[Person] = ()
    if file is not None:
        read = read_file(Path(file).read_bytes(), file, PeopleFile, InvalidPeopleFile)
        known = [Person(person.user_id, person.names) for person in read.people]
    taken = {person.user_id for person in known}
    simulated = (person for name in team_names() for person in shipped_team(name).persons)
    return PeopleDirectory(known, (person for person in simulated if person.user_id not in taken))

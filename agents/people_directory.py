"""Directory of the people whose names agents recognise: the users table, simulated teams, a YAML file (deprecated)."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.validation import InvalidFile, read_file
from agents.people import KnownPeople, Person
from agents.sim.scenarios import SimLibrary, usable_teams
from bus_schema.identities import UserId
from bus_schema.users import User
from mindbus.logs import logger

_DEPRECATED = "MINDBUS_PEOPLE is deprecated: add people with `mindbus users add`, then leave the file out"


class KnownPerson(BaseModel):
    """One entry of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    user_id: UserId
    names: tuple[str, ...] = Field(min_length=1, max_length=20)


class PeopleFile(BaseModel):
    """The file of known people."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    people: tuple[KnownPerson, ...] = Field(min_length=1, max_length=10_000)


class InvalidPeopleFile(InvalidFile):
    """It is not clear who is who; each line says where, what is wrong, what to do."""


class PeopleDirectory:
    """Users and people of the file are always known, a simulated team once one of it has spoken."""

    def __init__(self, known: Iterable[Person] = (), teams: Iterable[Sequence[Person]] = ()) -> None:
        self._known = tuple(known)
        self._simulated = {person.user_id: team for team in teams for person in team}
        self._users: Sequence[User] = ()
        self._people = lru_cache(maxsize=64)(self._those_of)

    def people(self, heard: Collection[str], users: Sequence[User] = ()) -> KnownPeople:
        """People known once these users have spoken; `users` is the users table."""
        if users is not self._users:
            self._users = users
            self._people.cache_clear()
        return self._people(frozenset(heard).intersection(self._simulated))

    def is_simulated(self, user_id: str) -> bool:
        """Whether a user belongs to a simulated team."""
        return user_id in self._simulated

    def teammates(self, user_id: str) -> list[str]:
        """Ids of the others of a simulated team; none for real users."""
        return [person.user_id for person in self._simulated.get(user_id, ()) if person.user_id != user_id]

    def with_speaker(self, heard: tuple[str, ...], user_id: str) -> tuple[str, ...]:
        """Simulated users who have spoken, including this one."""
        is_news = user_id in self._simulated and user_id not in heard
        return (*heard, user_id) if is_news else heard

    def _those_of(self, heard: frozenset[str]) -> KnownPeople:
        persons = {person.user_id: person for user_id in sorted(heard) for person in self._simulated[user_id]}
        persons |= {person.user_id: person for person in self._known}
        persons |= {user.user_id: Person(user.user_id, (user.name, *user.names)) for user in self._users}
        return KnownPeople(persons.values())


def open_people_directory(file: str | None, sim_dir: Path | None = None) -> PeopleDirectory:
    """The directory of a YAML file and of the simulated teams, those of `sim_dir` too; a broken team is left out.

    Raises InvalidPeopleFile, OSError.
    """
    known: Iterable[Person] = ()
    if file is not None:
        logger().warning(_DEPRECATED)
        read = read_file(Path(file).read_bytes(), file, PeopleFile, InvalidPeopleFile)
        known = [Person(person.user_id, person.names) for person in read.people]
    taken = {person.user_id for person in known}
    teams = usable_teams(SimLibrary(sim_dir)).values()
    return PeopleDirectory(known, ([each for each in team.persons if each.user_id not in taken] for team in teams))

"""Scenarios of a simulation from YAML, and the library of shipped and own ones."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agents.configuration.validation import (
    InvalidFile,
    UnknownFile,
    YamlPath,
    YamlProblem,
    load_shipped,
    read_document,
    suggestion,
    validate_document,
)
from agents.sim.teams import Feeling, Language, Team, UnknownTeam, parse_team
from agents.sim.templates import Template, Value, placeholders
from bus_schema.replies import Code
from bus_schema.sim import SimFile
from config.shipped import shipped_names
from mindbus.logs import logger

T = TypeVar("T")
_FEWEST_FACTS = 2
# Filled by whoever speaks.
SPEAKERS_OWN = frozenset({"colleague"})


class NumberRange(BaseModel):
    """Any number between two, in steps."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    least: int = Field(alias="from")
    most: int = Field(alias="to")
    step: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _has_room(self) -> "NumberRange":
        if self.most < self.least:
            raise ValueError("`to` must not be less than `from`")
        return self


Slot = NumberRange | Annotated[tuple[str, ...], Field(min_length=1)]
FactTemplates = Annotated[tuple[Template, ...], Field(min_length=1)]


class Stage(BaseModel):
    """A stage of an event: facts to report, the feeling about them, requests that follow."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    feeling: Feeling
    facts: tuple[FactTemplates, ...] = Field(min_length=_FEWEST_FACTS)
    asks: tuple[Template, ...] = ()


class Trigger(BaseModel):
    """An event of the outside world, that those responsible for its areas talk about, stage by stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")
    areas: tuple[str, ...] = Field(min_length=1)
    weight: int = Field(default=1, ge=1, le=100)
    slots: dict[str, Slot] = {}
    stages: tuple[Stage, ...] = Field(min_length=1)


class Scenario(BaseModel):
    """The events of a simulation; the slots that they have in common are filled anew in every sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: SimFile
    language: Language
    description: str = Field(default="", max_length=1000)
    pace_minutes: float = Field(default=15, gt=0, le=24 * 60)
    slots: dict[str, Slot] = {}
    triggers: tuple[Trigger, ...] = Field(min_length=1, max_length=500)


class InvalidScenario(InvalidFile):
    """The scenario cannot be played; each line says where, what is wrong, what to do."""


class UnknownScenario(UnknownFile, code=Code.NOT_FOUND):
    """There is no such scenario; add a file to config/sim/scenarios."""

    kind = "scenario"


def parse_scenario(text: bytes, source: str) -> Scenario:
    """Read a scenario from YAML; errors name it `source`. Raises InvalidScenario with every problem."""
    document = read_document(text, source, InvalidScenario)
    scenario = validate_document(document, source, Scenario, InvalidScenario)
    problems = [YamlProblem(source, document.line_of(place), place, message) for place, message in _problems(scenario)]
    if problems:
        raise InvalidScenario(problems)
    return scenario


def draw_values(slots: Mapping[str, Slot], chance: random.Random) -> dict[str, Value]:
    return {name: _one(slot, chance) for name, slot in slots.items()}


def _one(slot: Slot, chance: random.Random) -> Value:
    if isinstance(slot, NumberRange):
        return chance.randrange(slot.least, slot.most + 1, slot.step)
    return chance.choice(slot)


def _problems(scenario: Scenario) -> Iterator[tuple[YamlPath, str]]:
    ids = [trigger.id for trigger in scenario.triggers]
    for number, trigger in enumerate(scenario.triggers):
        place = ("triggers", number)
        if trigger.id in ids[:number]:
            yield (*place, "id"), f"two triggers are called {trigger.id!r}; rename one"
        known = {**scenario.slots, **trigger.slots}
        used: set[str] = set()
        for where, wording in _wordings(trigger):
            used |= placeholders(wording)
            for name in sorted(placeholders(wording) - known.keys() - SPEAKERS_OWN):
                yield (*place, *where), f"{{{name}}} is no slot{suggestion(name, {*known, *SPEAKERS_OWN})}"
        for name in trigger.slots:
            if name not in used:
                yield (*place, "slots", name), "no sentence uses it; remove it, or write it where it belongs"


def _wordings(trigger: Trigger) -> Iterator[tuple[YamlPath, str]]:
    for at, stage in enumerate(trigger.stages):
        for number, fact in enumerate(stage.facts):
            for way, wording in enumerate(fact):
                yield ("stages", at, "facts", number, way), wording
        for number, wording in enumerate(stage.asks):
            yield ("stages", at, "asks", number), wording


class SimLibrary:
    """Teams and scenarios by name: those of a folder of one's own, then those that come with MindBus.

    Names are plain words, so that they lead nowhere else.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def team(self, name: str) -> Team:
        """Raises UnknownTeam, InvalidTeam."""
        return self._read("profiles", name, parse_team, UnknownTeam)

    def scenario(self, name: str) -> Scenario:
        """Raises UnknownScenario, InvalidScenario."""
        return self._read("scenarios", name, parse_scenario, UnknownScenario)

    @property
    def team_names(self) -> tuple[str, ...]:
        return self._names("profiles")

    @property
    def scenario_names(self) -> tuple[str, ...]:
        return self._names("scenarios")

    def _read(self, kind: str, name: str, parse: Callable[[bytes, str], T], unknown: type[UnknownFile]) -> T:
        own = self._folder / kind / f"{name}.yaml" if self._folder else None
        if own and own.is_file():
            return parse(own.read_bytes(), str(own))
        if name not in shipped_names(f"sim/{kind}"):
            raise unknown(name, self._names(kind))
        return load_shipped(f"sim/{kind}", name, parse, unknown)

    def _names(self, kind: str) -> tuple[str, ...]:
        own = (file.stem for file in (self._folder / kind).glob("*.yaml")) if self._folder else ()
        return tuple(sorted({*own, *shipped_names(f"sim/{kind}")}))


def usable_teams(library: SimLibrary) -> dict[str, Team]:
    """All teams by name but the broken ones, which are logged."""
    teams = {}
    for name in library.team_names:
        try:
            teams[name] = library.team(name)
        except (InvalidFile, OSError) as error:
            logger().warning("simulated team left out", team=name, reason=str(error))
    return teams

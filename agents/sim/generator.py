"""Generator of simulated messages: team and scenario by seeded chance."""

import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from agents.sim.scenarios import Scenario, Stage, Trigger, draw_values
from agents.sim.teams import Feeling, Profile, Team
from agents.sim.templates import Template, Value, fill_template, placeholders
from mindbus.errors import Rejected

# The last texts, which are not repeated.
_REMEMBERED = 1000
_MOST_TRIES = 200
_MOST_AT_ONCE = 6
_GOES_ON = 0.55
_SAME_TELLER = 0.5
_THREE_FACTS = 0.5
_OPENS, _ASKS, _CLOSES = 0.7, 0.8, 0.35
_SHORTEST_GAP = timedelta(seconds=5)


@dataclass(frozen=True)
class SimMessage:
    """A simulated message, `after` the one before; `facts` are its sentences that report something."""

    number: int
    user_id: str
    text: str
    after: timedelta
    trigger: str
    feeling: Feeling
    facts: tuple[str, ...]


@dataclass
class Storyline:
    """An event that has begun, with its names and figures; they stay the same while it unfolds."""

    trigger: Trigger
    values: Mapping[str, Value]
    teller: Profile
    stage: int = 0

    @property
    def is_over(self) -> bool:
        return self.stage >= len(self.trigger.stages)


class NobodyResponsible(Rejected, ValueError):
    """Nobody in the team is responsible for any event of the scenario; give somebody one of its areas."""


class AnotherLanguage(Rejected, ValueError):
    """The team speaks one language, the scenario another; choose one that is written in the team's language."""


class TextsExhausted(RuntimeError):
    """All has been said already; give the scenario more triggers, more wordings or wider slots."""


class MessageGenerator:
    """Endless messages; the same team, scenario and seed give the same ones."""

    def __init__(self, team: Team, scenario: Scenario, seed: int) -> None:
        if team.language != scenario.language:
            raise AnotherLanguage(message=f"{AnotherLanguage.__doc__} ({team.language}, {scenario.language})")
        self._team, self._scenario = team, scenario
        self._triggers = [each for each in scenario.triggers if team.responsible_for(each.areas)]
        if not self._triggers:
            raise NobodyResponsible
        self._chance = random.Random(f"{team.name}/{scenario.name}/{seed}")
        self._stories: list[Storyline] = []
        self._recent: deque[str] = deque(maxlen=max(1, len(self._triggers) // 3))
        self._turns: Counter[str] = Counter()
        self._said: deque[str] = deque(maxlen=_REMEMBERED)

    def messages(self) -> Iterator[SimMessage]:
        """One after the other, without end."""
        number = 0
        while True:
            number += 1
            yield self._message(number)

    def _message(self, number: int) -> SimMessage:
        story = self._story()
        stage = story.trigger.stages[story.stage]
        for _ in range(_MOST_TRIES):
            facts = self._facts(stage, story)
            text = self._text(stage, story, facts)
            if text not in self._said:
                break
            story.values = draw_values(story.trigger.slots, self._chance)
        else:
            raise TextsExhausted(TextsExhausted.__doc__)
        self._said.append(text)
        self._turns[story.teller.user_id] += 1
        message = SimMessage(
            number=number,
            user_id=story.teller.user_id,
            text=text,
            after=self._pause(),
            trigger=story.trigger.id,
            feeling=stage.feeling,
            facts=facts,
        )
        self._go_on(story)
        return message

    def _story(self) -> Storyline:
        """One that has begun goes on, or another begins."""
        is_full = len(self._stories) >= _MOST_AT_ONCE
        if self._stories and (is_full or self._chance.random() < _GOES_ON):
            return self._chance.choice(self._stories)
        running = {story.trigger.id for story in self._stories}
        fresh = [each for each in self._triggers if each.id not in running and each.id not in self._recent]
        triggers = fresh or self._triggers
        (trigger,) = self._chance.choices(triggers, weights=[each.weight for each in triggers])
        story = Storyline(trigger, draw_values(trigger.slots, self._chance), self._teller(trigger))
        self._stories.append(story)
        self._recent.append(trigger.id)
        return story

    def _go_on(self, story: Storyline) -> None:
        story.stage += 1
        if story.is_over:
            self._stories.remove(story)
        elif self._chance.random() >= _SAME_TELLER:
            story.teller = self._teller(story.trigger)

    def _teller(self, trigger: Trigger) -> Profile:
        """One of those responsible, rather one who has not said much."""
        people = self._team.responsible_for(trigger.areas)
        weights = [(1 + self._turns[person.user_id]) ** -2 for person in people]
        return self._chance.choices(people, weights=weights)[0]

    def _facts(self, stage: Stage, story: Storyline) -> tuple[str, ...]:
        """The first, without which the others make no sense, then one or two more in their order."""
        others = range(1, len(stage.facts))
        count = 2 if len(others) > 1 and self._chance.random() < _THREE_FACTS else 1
        chosen = [0, *sorted(self._chance.sample(others, count))]
        return tuple(self._sentence(story, stage.facts[place]) for place in chosen)

    def _text(self, stage: Stage, story: Storyline, facts: tuple[str, ...]) -> str:
        """An opening, what happened, how it feels, what follows; not everybody says everything."""
        teller = story.teller
        parts = [self._sentence(story, teller.openings)] if self._chance.random() < _OPENS else []
        feeling = self._sentence(story, teller.feels(stage.feeling))
        parts += [*facts, feeling] if self._chance.random() < 0.5 else [facts[0], feeling, *facts[1:]]
        if stage.asks and self._chance.random() < _ASKS:
            parts.append(self._sentence(story, stage.asks))
        if self._chance.random() < _CLOSES:
            parts.append(self._sentence(story, teller.closings))
        return " ".join(parts)

    def _sentence(self, story: Storyline, wordings: tuple[Template, ...]) -> str:
        wording = self._chance.choice(wordings)
        values = dict(story.values)
        if "colleague" in placeholders(wording):
            others = [person for person in self._team.people if person is not story.teller]
            values["colleague"] = self._chance.choice(others or [story.teller]).name
        common = {name: slot for name, slot in self._scenario.slots.items() if name in placeholders(wording)}
        return fill_template(wording, {**draw_values(common, self._chance), **values}, story.teller.gender)

    def _pause(self) -> timedelta:
        minutes = self._chance.expovariate(1 / self._scenario.pace_minutes)
        return max(_SHORTEST_GAP, timedelta(minutes=min(minutes, 8 * self._scenario.pace_minutes)))

"""Simulated people talk like people: with facts, with feeling, never twice the same."""

from collections import Counter
from functools import cache
from itertools import islice
from typing import Any

import pytest

from agents.fragment_reader import FragmentReader
from agents.models.offline.model import OfflineModel
from agents.people import KnownPeople
from agents.sim.generator import AnotherLanguage, MessageGenerator, NobodyResponsible, SimMessage, TextsExhausted
from agents.sim.scenarios import (
    InvalidScenario,
    Scenario,
    SimLibrary,
    UnknownScenario,
    parse_scenario,
)
from agents.sim.teams import InvalidTeam, Team, UnknownTeam, parse_team
from agents.sim.templates import fill_template, pluralise
from agents.task_manager.agent import TaskManager
from agents.task_manager.tasks import TaskList
from agents.tone import analyse_tone
from bus_schema.dialogue import MAX_MESSAGE_CHARS
from language.words import Language, language_of
from tests.fragments import MORNING, a_fragment

SEEDS = (0, 7, 2**40)


SHIPPED = SimLibrary()
read_team, read_scenario = cache(SHIPPED.team), cache(SHIPPED.scenario)


def said(team: str = "team_ru", seed: int = 7, count: int = 200) -> list[SimMessage]:
    who = read_team(team)
    return list(islice(MessageGenerator(who, read_scenario(who.scenario), seed).messages(), count))


@pytest.mark.parametrize("name", SHIPPED.team_names)
def test_a_shipped_team_is_eight_people_with_a_scenario_of_their_language(name: str) -> None:
    team = SHIPPED.team(name)

    assert team.name == name
    assert len(team.people) == 8
    assert len({person.user_id for person in team.people}) == 8
    assert SHIPPED.scenario(team.scenario).language == team.language
    assert {"team_ru", "team_en"} <= set(SHIPPED.team_names)


@pytest.mark.parametrize("name", SHIPPED.scenario_names)
def test_every_event_of_a_shipped_scenario_is_somebodys_business(name: str) -> None:
    scenario = SHIPPED.scenario(name)
    teams = [team for team in map(SHIPPED.team, SHIPPED.team_names) if team.scenario == name]

    assert scenario.name == name
    assert all(team.responsible_for(trigger.areas) for team in teams for trigger in scenario.triggers)


@pytest.mark.parametrize("team", ["team_ru", "team_en"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_said_twice_within_two_hundred_messages(team: str, seed: int) -> None:
    texts = [message.text for message in said(team, seed, 600)]

    assert all(len(set(texts[start : start + 200])) == 200 for start in range(0, 401, 50))


@pytest.mark.parametrize("team", ["team_ru", "team_en"])
def test_the_same_seed_says_the_same_another_seed_something_else(team: str) -> None:
    assert said(team, 7, 50) == said(team, 7, 50)
    assert said(team, 7, 50) != said(team, 8, 50)


def test_the_first_words_of_a_seed_are_the_same_on_every_machine() -> None:
    first = said("team_en", 7, 1)[0]

    assert (first.user_id, first.trigger) == ("alice", "budget_report")
    assert first.text == (
        "Team, some news. 89% of the budget is spent. 510 thousand pounds are left. All under control, good. "
        "I'll check the invoices by Thursday."
    )


@pytest.mark.parametrize("team", ["team_ru", "team_en"])
def test_every_message_tells_at_least_two_facts_with_names_or_figures(team: str) -> None:
    for message in said(team):
        assert 2 <= len(message.facts) <= 3
        assert all(fact in message.text for fact in message.facts)
        assert len(set(message.facts)) == len(message.facts)
    with_figures = [any(mark.isdigit() for mark in " ".join(message.facts)) for message in said(team)]
    assert sum(with_figures) >= 0.8 * len(with_figures)


@pytest.mark.parametrize("team", ["team_ru", "team_en"])
def test_every_message_is_coloured_as_its_event_feels(team: str) -> None:
    messages = said(team)
    heard = {
        feeling: [analyse_tone(message.text).value for message in messages if message.feeling == feeling]
        for feeling in ("glad", "calm", "upset")
    }
    mean = {feeling: sum(values) / len(values) for feeling, values in heard.items()}

    assert mean["upset"] < -0.2 < 0 < mean["calm"] < mean["glad"]
    assert {message.feeling for message in messages} == {"glad", "upset", "calm"}


@pytest.mark.parametrize("team", ["team_ru", "team_en"])
def test_everybody_talks_and_nobody_talks_all_the_time(team: str) -> None:
    turns = Counter(message.user_id for message in said(team))

    assert len(turns) == 8
    assert max(turns.values()) <= 60
    assert min(turns.values()) >= 8


@pytest.mark.parametrize(("team", "language"), [("team_ru", Language.RUSSIAN), ("team_en", Language.ENGLISH)])
def test_messages_are_whole_sentences_in_the_teams_language(team: str, language: Language) -> None:
    for message in said(team):
        assert language_of(message.text) is language
        assert not set("{}|") & set(message.text)
        assert message.text[0].isupper() or not message.text[0].isalpha()
        assert message.text[-1] in ".!?"
        assert "  " not in message.text
        assert len(message.text) < min(700, MAX_MESSAGE_CHARS)


def test_an_event_unfolds_with_the_same_names_and_figures() -> None:
    builds = [message for message in said("team_ru", 3, 60) if message.trigger == "bugs"]
    numbers = [
        {word.strip(".,:") for word in message.text.split() if word.strip(".,:").isdigit()} for message in builds[:3]
    ]

    assert len(builds) >= 3
    assert set.intersection(*numbers) or numbers[0] & numbers[1]


@pytest.mark.parametrize("team", ["team_ru", "team_en"])
def test_time_passes_between_messages(team: str) -> None:
    gaps = [message.after.total_seconds() for message in said(team)]

    assert min(gaps) >= 5
    assert 15 < sum(gaps) / len(gaps) < 60


@pytest.mark.parametrize("team", ["team_ru", "team_en"])
async def test_what_they_say_is_work_for_the_other_agents(team: str) -> None:
    agent, book = TaskManager(FragmentReader(OfflineModel()), KnownPeople(read_team(team).persons)), TaskList()
    changes: Counter[str] = Counter()

    for message in said(team, count=40):
        fragment = a_fragment(message.number, message.user_id, [message.text], MORNING)
        book, outcome = await agent.process(fragment, book)
        changes.update(update.change for update in outcome.items)

    assert changes["found"] >= 25
    assert changes["moved"] >= 1
    assert changes["done"] >= 3


TEAM: dict[str, Any] = {"name": "duo", "language": "en", "scenario": "tiny"}
PERSON = """
  - user_id: ann
    name: Ann
    gender: f
    role: cook
    character: calm
    responsibility: [kitchen]
    openings: ["Well."]
    glad: ["Lovely."]
    upset: ["Awful."]
    calm: ["Fine."]
    closings: ["Bye."]
"""
DUO = f"name: duo\nlanguage: en\nscenario: tiny\npeople:{PERSON}"
TINY = """name: tiny
language: en
slots: {day: [today, tomorrow]}
triggers:
  - id: soup
    areas: [kitchen]
    slots:
      plates: {from: 1, to: 3}
    stages:
      - feeling: calm
        facts:
          - ["We cooked {plates:plate,plates} of soup."]
          - ["It is {cold|hot} and due {day}."]
"""


def duo(text: str = DUO) -> Team:
    return parse_team(text.encode(), "profiles/duo.yaml")


def tiny(text: str = TINY) -> Scenario:
    return parse_scenario(text.encode(), "scenarios/tiny.yaml")


def test_ones_own_team_and_scenario_can_be_played() -> None:
    message = next(MessageGenerator(duo(), tiny(), 1).messages())

    assert message.user_id == "ann"
    assert "It is hot and due" in message.text


def test_who_has_nothing_new_to_say_says_so() -> None:
    with pytest.raises(TextsExhausted, match="more triggers, more wordings or wider slots"):
        list(islice(MessageGenerator(duo(), tiny(), 1).messages(), 500))


def test_a_team_and_a_scenario_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AnotherLanguage, match="ru, en"):
        MessageGenerator(SHIPPED.team("team_ru"), tiny(), 1)
    with pytest.raises(NobodyResponsible):
        MessageGenerator(duo(DUO.replace("kitchen", "garden")), tiny(), 1)


def test_a_name_that_there_is_not_is_told_which_there_are() -> None:
    with pytest.raises(UnknownTeam, match=r"there is no team 'team_fr'; there are team_en, team_ru"):
        SHIPPED.team("team_fr")
    with pytest.raises(UnknownScenario, match=r"there is no scenario '\.\./x'; there are launch_en, launch_ru"):
        SHIPPED.scenario("../x")


@pytest.mark.parametrize(
    ("change", "into", "complaint"),
    [
        ("feeling: calm", "feeling: sad", "tiny.yaml:10: triggers[0].stages[0].feeling: "),
        ("areas: [kitchen]", "area: [kitchen]", "triggers[0].area: there is no such field; did you mean 'areas'?"),
        ("{from: 1, to: 3}", "{from: 9, to: 3}", "tiny.yaml:8: triggers[0].slots.plates"),
        (
            "{plates:plate,plates}",
            "{plate:plate,plates}",
            "tiny.yaml:12: triggers[0].stages[0].facts[0][0]: {plate} is no slot;",
        ),
        ("{cold|hot}", "{cold|hot", "facts[1][0]: has a brace without its other half; close it"),
        ("{cold|hot}", "{a|b|c}", "facts[1][0]: {a|b|c} must be {his form|her form}"),
        ("{plates:plate,plates}", "{plates:plate}", "facts[0][0]: {plates:plate} needs two forms of the word"),
        ("language: en", "language: fr", "tiny.yaml:2: language: "),
        ("  - id: soup", "  - id: soup\n    id: stew", "tiny.yaml:6: file: 'id' is given twice"),
        ("  - id: soup", " - id: soup\n   - x", "tiny.yaml:"),
        (
            '          - ["It is {cold|hot} and due {day}."]\n',
            "",
            "triggers[0].stages[0].facts: has 1; list at least 2",
        ),
    ],
)
def test_what_is_wrong_with_a_scenario_is_said_with_file_line_and_field(change: str, into: str, complaint: str) -> None:
    with pytest.raises(InvalidScenario) as bad:
        tiny(TINY.replace(change, into, 1))

    assert complaint in str(bad.value)


def test_a_slot_that_no_sentence_uses_is_pointed_out() -> None:
    with pytest.raises(
        InvalidScenario, match=r"tiny.yaml:8: triggers\[0\].slots.plates: no sentence uses it; remove it"
    ):
        tiny(TINY.replace("{plates:plate,plates} of soup", "soup"))


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InvalidScenario) as bad:
        tiny(TINY.replace("{plates:plate,plates}", "{pots:pot,pots}").replace("{day}", "{date}"))

    assert len(bad.value.problems) == 3


@pytest.mark.parametrize(
    ("change", "into", "complaint"),
    [
        ("gender: f", "gender: x", "duo.yaml:7: people[0].gender: "),
        ("user_id: ann", "user_id: Анна", "duo.yaml:5: people[0].user_id: a user id has 1 to 64 characters"),
        ("    role: cook\n", "", "people[0].role: is missing; add it"),
        ("glad:", "happy:", "people[0].happy: there is no such field"),
        ("closings", "closing", "did you mean 'closings'?"),
        ("[kitchen]", "[]", "people[0].responsibility: is empty; list at least one"),
        (PERSON, PERSON + PERSON.lstrip("\n"), "people[1].user_id: 'ann' is taken; give everybody an id of their own"),
    ],
)
def test_what_is_wrong_with_a_team_is_said_with_file_line_and_field(change: str, into: str, complaint: str) -> None:
    with pytest.raises(InvalidTeam) as bad:
        duo(DUO.replace(change, into, 1))

    assert complaint in str(bad.value)


@pytest.mark.parametrize(
    ("number", "forms", "expected"),
    [
        (1, ["минута", "минуты", "минут"], "1 минута"),
        (3, ["минута", "минуты", "минут"], "3 минуты"),
        (11, ["минута", "минуты", "минут"], "11 минут"),
        (22, ["минута", "минуты", "минут"], "22 минуты"),
        (1, ["ticket", "tickets"], "1 ticket"),
        (21, ["ticket", "tickets"], "21 tickets"),
    ],
)
def test_numbers_agree_with_their_words(number: int, forms: list[str], expected: str) -> None:
    assert pluralise(number, forms) == expected


def test_a_sentence_is_filled_for_him_or_for_her() -> None:
    assert fill_template("{thing} готов. {он ушёл|она ушла}", {"thing": "отчёт"}, "f") == "Отчёт готов. Она ушла"
    assert fill_template("{thing} готов. {он ушёл|она ушла}", {"thing": "отчёт"}, "m") == "Отчёт готов. Он ушёл"

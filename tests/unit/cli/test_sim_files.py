"""Teams and scenarios are looked over whole: every problem is told with its line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agents.sim.scenarios import SimLibrary
from mindbus.cli.main import app

Invoke = Callable[..., Result]

SCENARIO = """name: fair
language: en
triggers:
  - id: rain
    areas: [weather]
    stages:
      - feeling: upset
        facts:
          - ["It rains on {dya}."]
          - [The tent leaks.]
  - id: rain
    areas: [weather]
    weight: 0
    stages: []
"""
PERSON = """  - user_id: pat
    name: Pat
    gender: f
    role: tester
    character: calm
    responsibility: [weather]
    openings: [Hi.]
    glad: [Good.]
    upset: [Bad.]
    calm: [So.]
    closings: [Bye.]
"""


@pytest.fixture
def mindbus(tmp_path: Path) -> Invoke:
    runner = CliRunner(env={"MINDBUS_DATA_DIR": str(tmp_path / "data"), "MINDBUS_SIM_DIR": str(tmp_path)})
    return lambda *arguments: runner.invoke(app, list(arguments))


def a_team(language: str, scenario: str) -> str:
    return f"name: mine\nlanguage: {language}\nscenario: {scenario}\npeople:\n{PERSON}"


def test_every_problem_of_a_scenario_is_told(mindbus: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "fair.yaml"
    file.write_text(SCENARIO, encoding="utf-8")

    outcome = mindbus("sim", "check", str(file), "--json")

    told = json.loads(outcome.stdout)
    assert (outcome.exit_code, told["ok"], told["files"][0]["kind"]) == (1, False, "scenario")
    places = [(problem["line"], problem["field"]) for problem in told["files"][0]["problems"]]
    assert places == [(13, "triggers[1].weight"), (14, "triggers[1].stages")]


@pytest.mark.parametrize(
    ("content", "kind", "complaint"),
    [
        ("people: [", "neither", "file"),
        ("- a\n- b\n", "neither", "neither a team"),
        ("", "neither", "the file is empty"),
        (a_team("en", "launch_ru"), "team", "one language"),
        (a_team("en", "launch_en"), "team", "Nobody in the team is responsible"),
        (a_team("en", "nowhere"), "team", "there is no scenario 'nowhere'"),
        (f"{a_team('en', 'launch_en')}{PERSON}", "team", "people[1].user_id: 'pat' is taken"),
    ],
)
def test_what_cannot_be_played_is_told(
    mindbus: Invoke, tmp_path: Path, content: str, kind: str, complaint: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content, encoding="utf-8")

    outcome = mindbus("sim", "check", str(file))

    assert (outcome.exit_code, complaint in outcome.stdout) == (1, True), outcome.stdout
    told = json.loads(mindbus("sim", "check", str(file), "--json").stdout)
    assert told["files"][0]["kind"] == kind


def test_what_comes_with_mindbus_is_listed_beside_ones_own(mindbus: Invoke, tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "fair.yaml").write_text(SCENARIO, encoding="utf-8")

    listed = json.loads(mindbus("sim", "ls", "--json").stdout)

    assert {team["name"] for team in listed["teams"]} == set(SimLibrary().team_names)
    by_name = {scenario["name"]: scenario for scenario in listed["scenarios"]}
    assert set(by_name) == {*SimLibrary().scenario_names, "fair"}
    assert "fair.yaml:13" in by_name["fair"]["problem"]
    assert "cannot be used" in mindbus("sim", "ls").stdout


def test_doctor_tells_of_a_broken_scenario(mindbus: Invoke, tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "fair.yaml").write_text(SCENARIO, encoding="utf-8")

    checks = {check["check"]: check for check in json.loads(mindbus("doctor", "--json").stdout)["checks"]}

    assert checks["Simulations"]["status"] == "warning"
    assert "fair.yaml:13" in checks["Simulations"]["detail"]
    assert checks["Habits"]["status"] == checks["Language model"]["status"] == "ok"

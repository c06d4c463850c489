"""A simulation ends when it is told to, or has nothing new to say; one that cannot be played never begins."""

from pathlib import Path

import pytest

from bus_schema.dialogue import EndDialogue
from bus_schema.replies import Code
from bus_schema.sim import GetSimStatus, SimStopped, StartSim, StopSim
from config.settings import FleetSettings
from mindbus import ReplyError
from tests.dialogue_kit import Runtime, dialogue_settings, runtime

CAST = ("storage", "tracker", "dialogue", "sim")
DUO = """name: duo
language: en
scenario: tiny
people:
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
TINY = """name: tiny
language: en
pace_minutes: 1
triggers:
  - id: soup
    areas: [kitchen]
    stages:
      - feeling: calm
        facts: [["We cooked soup."], ["It is hot."]]
"""


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    for kind, name, text in (("profiles", "duo", DUO), ("scenarios", "tiny", TINY)):
        file = tmp_path / "sim" / kind / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return dialogue_settings(vhost_url, tmp_path, sim_dir=tmp_path / "sim")


async def stopped(team: Runtime) -> SimStopped:
    (envelope,) = await team.until_on_timeline("sim_stop")
    return SimStopped.model_validate(envelope.data)


async def test_one_that_has_nothing_new_to_say_ends_and_says_so(settings: FleetSettings) -> None:
    async with runtime(settings, *CAST) as team:
        await team.bus.request(StartSim(profiles="duo", speed=100_000))
        ending = await stopped(team)
        state = await team.bus.request(GetSimStatus())
        said = await team.history("ann")
        nothing_left = await team.bus.request(EndDialogue(user_id="ann"))

    assert "more triggers, more wordings" in ending.reason
    assert not state.is_running
    assert state.counts == ending.counts
    assert 2 * ending.counts.answered == len(said) > 0
    assert nothing_left.fragment_id is None


async def test_one_that_is_stopped_is_answered_to_its_end(settings: FleetSettings) -> None:
    async with runtime(settings, *CAST) as team:
        started = await team.bus.request(StartSim(profiles="team_en", speed=600))
        with pytest.raises(ReplyError, match="is running; stop it first"):
            await team.bus.request(StartSim(profiles="team_ru"))
        await team.until_on_timeline("message_sent", 3)
        counts = await team.bus.request(StopSim())
        ending = await stopped(team)

    assert counts == ending.counts
    assert counts.sim_id == started.sim_id
    assert counts.sent == counts.answered >= 3
    assert ending.reason == "it was stopped"


async def test_one_whose_scenario_is_gone_after_a_restart_ends_with_the_reason(settings: FleetSettings) -> None:
    async with runtime(settings, *CAST) as team:
        await team.bus.request(StartSim(profiles="duo", speed=60))
        await team.until_on_timeline("message_sent")
    assert settings.sim_dir is not None
    (settings.sim_dir / "scenarios" / "tiny.yaml").unlink()
    async with runtime(settings, *CAST) as team:
        ending = await stopped(team)
        state = await team.bus.request(GetSimStatus())
        await team.bus.request(StartSim(profiles="team_en", speed=600))
        await team.bus.request(StopSim())

    assert ending.reason.startswith("it cannot go on: there is no scenario 'tiny'")
    assert not state.is_running
    assert state.counts == ending.counts


@pytest.mark.parametrize(
    ("profiles", "scenario", "code", "said"),
    [
        ("nobody", None, Code.NOT_FOUND, "there is no team 'nobody'; there are broken, duo, team_en, team_ru"),
        ("duo", "nowhere", Code.NOT_FOUND, "there is no scenario 'nowhere'"),
        ("team_ru", "tiny", Code.INVALID, "ru, en"),
        ("broken", None, Code.INVALID, "broken.yaml:3"),
    ],
)
async def test_one_that_cannot_be_played_never_begins(
    settings: FleetSettings, tmp_path: Path, profiles: str, scenario: str | None, code: Code, said: str
) -> None:
    broken = tmp_path / "sim" / "profiles" / "broken.yaml"
    broken.write_text("name: broken\nlanguage: en\nscenario: 7\npeople: []\n", encoding="utf-8")
    async with runtime(settings, "storage", "sim") as team:
        with pytest.raises(ReplyError) as refused:
            await team.bus.request(StartSim(profiles=profiles, scenario=scenario))
        state = await team.bus.request(GetSimStatus())

    assert refused.value.code is code
    assert said in refused.value.message
    assert not state.is_running

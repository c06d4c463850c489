"""What the guide to sub-agents tells people to copy works as it stands."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus_schema.subagent import SERVICE_PREFIX
from config.settings import FleetSettings
from mindbus.registry import WorkerRegistry, installed_workers
from tests.dialogue_kit import Runtime, dialogue_settings
from tests.fleets import fleet_of
from tests.subagent_kit import with_subagent
from tests.third_party import install
from workers.dialogue.delegation import InvalidSubagentsFile, known_subagents

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "how-to" / "subagents.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL))
YAML = re.findall(r"```yaml\n(subagents:.*?)```", GUIDE, re.DOTALL)[0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    points = dict(re.findall(r"^(subagent-\w+) = \"(\S+)\"", FILES["weather/pyproject.toml"], re.MULTILINE))
    monkeypatch.syspath_prepend(install(tmp_path, "weather", FILES["weather/weather.py"], **points))
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.usefixtures("installed")
async def test_a_sub_agent_of_another_package_is_told_and_asked(vhost_url: str, tmp_path: Path) -> None:
    fleet = installed_workers()
    said = re.findall(r'--user anna --message "(.*?)"', GUIDE)[0]
    names = ("storage", "history", "tracker", "subagent-weather", "dialogue")
    async with fleet_of(*map(fleet.require, names), settings=dialogue_settings(vhost_url, tmp_path)) as running:
        team = Runtime(running)
        answer = await team.say("anna", said)
        stored = await with_subagent(team, "anna", "weather")

    assert stored == [
        ("user", "It rains."),
        ("assistant", "Noted."),
        ("user", "How is the weather?"),
        ("assistant", "You said: It rains."),
    ]
    assert answer.response.endswith("You said: It rains.")


@pytest.mark.usefixtures("installed")
def test_the_master_knows_those_installed_and_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "subagents.yaml"
    file.write_text(YAML.replace("weather", "elsewhere"), encoding="utf-8")
    known = known_subagents(FleetSettings(subagents=str(file)), installed_workers())

    assert list(known) == ["analytic", "weather", "elsewhere"]
    assert all(known.values())
    assert known["weather"].startswith("Remembers")
    assert f"{SERVICE_PREFIX}analytic" in installed_workers().entries


@pytest.mark.parametrize(
    ("text", "why"), [("subagents: {Weather!: x}", "Weather"), ("subagents: {}", "subagents"), ("- a", "mapping")]
)
def test_a_file_that_cannot_be_used_says_what_is_wrong(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "subagents.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSubagentsFile, match=why):
        known_subagents(FleetSettings(subagents=str(file)), WorkerRegistry())

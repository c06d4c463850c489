"""Sub-agents of YAML files: known to the fleet and to the master, answered by offline and scripted models."""

import re
from pathlib import Path

import pytest

from agents.subagents.files import InvalidSubagent, open_subagent
from language.words import Language
from mindbus.cli.errors import UsageError
from mindbus.errors import MindBusError
from mindbus.registry import installed_workers
from mindbus_fleet.cli.config_overrides import own_configuration, require_usable_configuration
from tests.dialogue_kit import Runtime, dialogue_settings
from tests.fleets import fleet_of
from tests.llm_server import LlmServer, Says
from tests.subagent_kit import called, delegates, with_subagent

DOCS = Path(__file__).parents[2] / "docs/how-to/subagents.md"
(WEATHER,) = re.findall(
    r"<!-- file: (?:my-config/subagents/weather.yaml) -->\n```yaml\n(.*?)```", DOCS.read_text(), re.S
)
CAST = ("storage", "history", "tracker", "subagent-weather", "dialogue")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config/subagents").mkdir(parents=True)
    (tmp_path / "config/subagents/weather.yaml").write_text(WEATHER, encoding="utf-8")
    return tmp_path / "config"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Tell the sub-agent weather that my name is Bob, then ask it", "Bob"),
        ("Скажи подагенту weather, что меня зовут Алия, а потом спроси у него", "Алия"),
    ],
)
async def test_a_file_makes_a_sub_agent_that_remembers(
    vhost_url: str, tmp_path: Path, folder: Path, text: str, name: str
) -> None:
    fleet = installed_workers().checked()
    async with fleet_of(*map(fleet.require, CAST), settings=dialogue_settings(vhost_url, tmp_path)) as running:
        team = Runtime(running)
        answer = await team.say("12345", text)
        stored = await with_subagent(team, "12345", "weather")

    assert [each.subagent for each in answer.delegations] == ["weather", "weather"]
    assert name in answer.delegations[-1].response
    assert len(stored) == 4


async def test_a_model_is_given_its_prompt_its_tools_and_the_file_of_the_language(
    vhost_url: str, tmp_path: Path, folder: Path
) -> None:
    russian = WEATHER.replace("You know the weather.", "Ты знаешь погоду.")
    (folder / "subagents/weather.ru.yaml").write_text(russian, encoding="utf-8")
    async with LlmServer() as server:
        model = {"llm_base_url": server.base_url, "llm_model": "scripted"}
        settings = dialogue_settings(vhost_url, tmp_path).model_copy(update=model)
        async with fleet_of(*map(installed_workers().require, CAST), settings=settings) as running:
            server.script.extend([delegates("Какая погода?", to="weather"), Says("Дождь."), Says("Идёт дождь.")])
            answer = await Runtime(running).say("anna", "Какая погода?")
            server.script.extend(
                [
                    delegates("Is it raining?", to="weather"),
                    called("compute", artifact_id="art_1", operation="count"),
                    Says("It is."),
                    Says("It rains."),
                ]
            )
            await Runtime(running).say("anna", "Is it raining?")

    master, first = server.requests[0].body, server.requests[1].body
    assert "Knows the weather" in str([each["function"]["description"] for each in master["tools"]])
    assert "Ты знаешь погоду." in first["messages"][0]["content"]
    assert [each["function"]["name"] for each in first["tools"]] == ["search_memory"]
    assert [(each.task, each.response) for each in answer.delegations] == [("Какая погода?", "Дождь.")]
    english, corrected = server.requests[4].body, server.requests[5].body
    assert "You know the weather." in english["messages"][0]["content"]
    assert "there is no tool 'compute'" in corrected["messages"][-1]["content"]


def test_the_analyst_is_such_a_file() -> None:
    assert open_subagent("analytic").tools == ("search_memory", "read_artifact", "compute")
    assert installed_workers().own["subagent-analytic"].is_own


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("tools: [search_memory]", "tools: [search]"), "weather.yaml:4: tools[0]: "),
        (("prompt:", "promt:"), "promt: there is no such field; did you mean 'prompt'?"),
        (("name: weather", "name: climate"), "name: must be 'weather', like the file"),
        (("tools: [search_memory]", "tools: [compute, compute]"), "names a tool twice"),
    ],
)
def test_a_broken_file_leaves_the_others_alone_and_says_what_is_wrong(
    folder: Path, change: tuple[str, str], problem: str
) -> None:
    (folder / "subagents/weather.yaml").write_text(WEATHER.replace(*change), encoding="utf-8")
    with pytest.raises(InvalidSubagent) as caught:
        open_subagent("weather", Language.ENGLISH)
    assert problem in str(caught.value)

    fleet = installed_workers().checked()
    assert problem in fleet.broken["subagent-weather"]
    assert "subagent-analytic" in fleet.entries
    with pytest.raises(MindBusError, match=r"weather\.yaml"):
        installed_workers().require("subagent-weather").load()


def test_doctor_counts_it_among_the_files_in_use(folder: Path) -> None:
    assert own_configuration() == ("ok", f"in {folder}: subagents/weather.yaml")

    (folder / "subagents/climate.yaml").write_text(WEATHER, encoding="utf-8")
    assert own_configuration() == ("failed", f"{folder}/subagents/climate.yaml: name: must be 'climate', like the file")
    with pytest.raises(UsageError, match="must be 'climate'"):
        require_usable_configuration()

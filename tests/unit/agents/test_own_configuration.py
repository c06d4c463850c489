"""Files of MINDBUS_CONFIG_DIR in the place of those that ship with MindBus, also for one language."""

from pathlib import Path

import pytest

from agents.configuration.prompts import (
    InvalidGuide,
    InvalidRole,
    crafts_of_roles,
    role_names,
    shipped_guide,
    shipped_role,
)
from agents.context.preferences import open_preferences
from agents.dialogue.agent import DialogueAgent
from agents.models.language_model import ModelMessage
from agents.models.offline.model import OfflineModel
from agents.processes.cards import card_names, shipped_card
from agents.sim.scenarios import SimLibrary
from config.shipped import config_file, role_workers
from language.words import Language
from mindbus_fleet.cli.config_overrides import own_configuration

GUIDE = "name: {name}\ndescription: Of one's own.\nprompt_version: 9.0.0\nsystem: {system}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(tmp_path))
    for each in ("guides", "roles", "cards", "subagents", "sim/profiles", "sim/scenarios"):
        (tmp_path / each).mkdir(parents=True)
    return tmp_path


def write_guide(folder: Path, file: str, system: str, name: str = "dialogue") -> None:
    (folder / "guides" / file).write_text(GUIDE.format(name=name, system=system), encoding="utf-8")


def test_the_file_of_the_language_comes_before_the_general_one_and_that_before_the_shipped_one(folder: Path) -> None:
    write_guide(folder, "dialogue.ru.yaml", "По-русски.")
    assert shipped_guide("dialogue", Language.RUSSIAN).system == "По-русски."
    assert "assistant of a team" in shipped_guide("dialogue", Language.ENGLISH).system

    other = folder / "other"
    (other / "guides").mkdir(parents=True)
    write_guide(other, "dialogue.yaml", "In general.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINDBUS_CONFIG_DIR", str(other))
        assert shipped_guide("dialogue", Language.RUSSIAN).system == "In general."
        assert shipped_guide("packer_cold").name == "packer_cold"


def test_the_assistant_is_instructed_in_the_language_of_the_message(folder: Path) -> None:
    write_guide(folder, "dialogue.ru.yaml", "Отвечай по-русски.")
    agent = DialogueAgent(OfflineModel())

    russian = agent.prompt([ModelMessage(role="user", content="Привет, как дела?")])
    english = agent.prompt([ModelMessage(role="user", content="Hello, how are you?")])

    assert "Отвечай по-русски." in russian[0].content
    assert "assistant of a team" in english[0].content


def test_cards_roles_and_teams_can_be_added_roles_and_habits_replaced(folder: Path) -> None:
    (folder / "cards" / "memo.yaml").write_bytes(config_file("cards", "article").content.replace(b"article", b"memo"))
    team = config_file("sim/profiles", "team_en").content.replace(b"name: team_en", b"name: crew", 1)
    (folder / "sim/profiles/crew.yaml").write_bytes(team)
    role = config_file("roles", "pushkin").content
    (folder / "roles/pushkin.yaml").write_bytes(role.replace(b"max_rounds: 2", b"max_rounds: 1", 1))
    (folder / "roles/poet.yaml").write_bytes(role.replace(b"name: pushkin", b"name: poet", 1))
    (folder / "guides/stray.yaml").write_bytes(role)
    (folder / "habits.yaml").write_text("default: {most_per_hour: 7}\n")

    assert "memo" in card_names()
    assert shipped_card("memo", role_names()).steps
    assert "crew" in SimLibrary().team_names
    assert SimLibrary().team("crew").people
    assert "poet" in role_names()
    assert crafts_of_roles()["poet"] == ("draft", "final")
    assert [(point.name, callable(point.load())) for point in role_workers()] == [("poet", True)]
    assert shipped_role("pushkin").name == "pushkin"
    assert open_preferences(None).default.most_per_hour == 7
    status, detail = own_configuration()
    assert status == "warning"
    assert "cards/memo.yaml, habits.yaml, roles/poet.yaml, roles/pushkin.yaml, sim/profiles/crew.yaml" in detail
    assert "guides/stray.yaml replaces nothing" in detail


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("name: dialogue\nsystem: [", "guides/dialogue.yaml:2: file: not YAML: "),
        (GUIDE.format(name="dialogue", system="x") + "sytem: x", "dialogue.yaml:5: sytem: there is no such field; did"),
        ("", "guides/dialogue.yaml:1: file: the file is empty"),
        (GUIDE.format(name="dialog", system="x"), "dialogue.yaml: name: must be 'dialogue', like the file"),
    ],
)
def test_a_broken_file_is_named_with_its_line_and_the_remedy(folder: Path, content: str, problem: str) -> None:
    (folder / "guides/dialogue.yaml").write_text(content)
    with pytest.raises(InvalidGuide) as caught:
        DialogueAgent(OfflineModel())

    assert str(folder) in str(caught.value)
    assert problem in str(caught.value)


def test_a_broken_role_is_named_by_its_path(folder: Path) -> None:
    (folder / "roles/critic.yaml").write_text("name: critic\n")
    with pytest.raises(InvalidRole, match=str(folder / "roles/critic.yaml")):
        shipped_role("critic")


def test_doctor_tells_which_files_replace_shipped_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_guide(folder, "dialogue.ru.yaml", "По-русски.")
    assert own_configuration() == ("ok", f"in {folder}: guides/dialogue.ru.yaml")

    write_guide(folder, "dialog.yaml", "x", name="dialog")
    status, detail = own_configuration()
    assert status == "warning"
    assert "guides/dialog.yaml replaces nothing; did you mean 'dialogue'?" in detail

    (folder / "habits.yaml").write_text("default:\n  most_per_hour: 0\n")
    status, detail = own_configuration()
    assert status == "failed"
    assert f"{folder}/habits.yaml:2: default.most_per_hour: 0 is out of range" in detail

    monkeypatch.setenv("MINDBUS_CONFIG_DIR", str(folder / "gone"))
    assert own_configuration() == ("failed", f"{folder}/gone is not a folder: correct MINDBUS_CONFIG_DIR")

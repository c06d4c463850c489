"""An agent of somebody else's, as the guide has it; one that always fails beside it."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel

from benchmarks.servers.workers import workers_of
from bus_schema.dialogue import EndDialogue
from mindbus import DialogueFragment, Event, ProcessingAgent
from mindbus.bus.deadletters import DeadLetters
from mindbus.testing.wait import until
from tests.dialogue_kit import Runtime, dialogue_settings, runtime
from tests.fleets import fleet_of
from tests.installed import FLEET

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "how-to" / "processing-agent.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL))
CAST = ("storage", "history", "tracker", "mood_watcher", "dialogue")


class Nothing(BaseModel):
    """It remembers nothing."""


class Clumsy(ProcessingAgent[Nothing]):
    """Always fails."""

    name = "clumsy"
    state = Nothing

    async def process(self, fragment: DialogueFragment, state: Nothing) -> tuple[Nothing, Sequence[Event]]:
        raise ValueError("dropped it")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The guide's package, installed beside MindBus."""
    for name, content in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    site = tmp_path / "site"
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--target", str(site), str(tmp_path / "link-keeper")], check=True, timeout=120)
    return site


def test_the_guides_agent_is_short() -> None:
    assert len(FILES["link-keeper/link_keeper.py"].splitlines()) <= 33


async def test_the_guides_agent_hears_remembers_and_survives(vhost_url: str, tmp_path: Path, installed: Path) -> None:
    settings = dialogue_settings(vhost_url, tmp_path)
    async with runtime(settings, *CAST) as team:
        with workers_of(settings, str(installed)) as workers:
            await workers.start("link_keeper")
            await _said(team, "Посмотри https://example.org/a и https://example.org/b")
            await team.until_on_timeline("processed.links_found")
            await workers.kill("link_keeper")
            await _said(team, "Again https://example.org/b, now also https://example.org/c")
            found = await team.until_on_timeline("processed.links_found", 2)

    links = [envelope.data["links"] for envelope in found if envelope.data]
    assert links == [["https://example.org/a", "https://example.org/b"], ["https://example.org/c"]]


async def test_an_agent_that_always_fails_ends_among_the_dead_and_the_others_go_on(
    vhost_url: str, tmp_path: Path
) -> None:
    settings = dialogue_settings(vhost_url, tmp_path)
    async with fleet_of(*(FLEET[name] for name in CAST), Clumsy, settings=settings) as fleet:
        team = Runtime(fleet)
        await _said(team, "Всё очень плохо, ничего не работает!")
        await team.until_on_timeline("processed.mood_assessed")
        dead = DeadLetters(vhost_url)

        async def is_dead() -> bool:
            return len(await dead.look("clumsy")) == 1

        await until(is_dead, 30, "the fragment is dead")
        (letter,) = await dead.look("clumsy")

    assert "dropped it" in letter.reason


async def _said(team: Runtime, text: str) -> None:
    await team.say("anna", text)
    await team.bus.request(EndDialogue(user_id="anna"))

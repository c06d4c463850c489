"""What the guide to the SDK tells agents to copy works as it stands."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleets import fleet_of, settings_for
from tests.hashing_embedder import HashingEmbedder
from tests.installed import FLEET
from tests.kps_kit import kps_with
from tests.memory_kit import SPACE

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "how-to" / "agent-sdk.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL))
# One after the other in one interpreter: to start one takes longer than most examples.
RUN_ALL = "import runpy, sys; [runpy.run_path(path, run_name='__main__') for path in sys.argv[1:]]"
LOGGED = re.compile(r"\d{4}-\d\d-\d\d ")

SAID = {
    "first_steps.py": [
        "at hand: ['The release is on Friday.']",
        "changed: The release is on Monday. version 2",
        "gone: None",
        "learned: 1 stored",
    ],
    "ask_memory.py": ["found: Attention is a weighted sum. score True", "at hand: ['id1']", "prefetched: 1"],
    "watch_project.py": [
        "KEM_PUBLISHED The draft is ready.",
        "KEM_PUBLISHED Read this.",
        "at hand: ['Read this.', 'The draft is ready.']",
    ],
    "take_turns.py": [
        "fencing number: True",
        "held by: editor",
        "the other one hears: conflict",
        "drafts: 1",
        "drafts: 1",
        "drafts: 1",
    ],
    "plain.py": ["read back: Written without asyncio.", "heard: KEM_PUBLISHED", "runs: 1"],
}


def test_every_example_is_run() -> None:
    assert list(FILES) == list(SAID)
    assert GUIDE.count("```python") == len(FILES)


@pytest.mark.slow
async def test_the_examples_say_what_they_should(vhost_url: str, tmp_path: Path) -> None:
    settings = settings_for(vhost_url, tmp_path / "data", embedding_model=SPACE.model, embedding_dim=SPACE.dim)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    kps = kps_with(HashingEmbedder(SPACE.model, SPACE.dim))
    async with fleet_of(FLEET["glm"], FLEET["swm"], kps, settings=settings):
        ran = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-W", "error", "-c", RUN_ALL, *(str(tmp_path / name) for name in FILES)],
            env=settings.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert ran.returncode == 0, ran.stderr
    said = [line for line in ran.stdout.splitlines() if not LOGGED.match(line)]
    assert said == [line for lines in SAID.values() for line in lines]

"""The tutorial word for word, in both languages, against an OpenAI-compatible endpoint with a script."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.newcomer import ROOT, Newcomer, PageFile, files_of, parts_of

PAGES = {"en": ROOT / "docs" / "tutorial.md", "ru": ROOT / "docs" / "tutorial.ru.md"}
# The tests run in what `make setup` has made.
ELSEWHERE = ("make setup", ". .venv/bin/activate")


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Address of a model that looks up what it is asked for and answers with what it has found."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.looking_up_model"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("language", ["en", pytest.param("ru", marks=pytest.mark.proof)])
def test_every_word_of_it_works(language: str, tmp_path: Path, broker: object, endpoint: str) -> None:
    # A busy machine may take longer to search than an answer usually waits.
    pupil = Newcomer(tmp_path, {"LANG": "C.UTF-8", "MINDBUS_RECALL_TIMEOUT_S": "30"})
    said: dict[str, str] = {}
    try:
        for part in parts_of(PAGES[language]):
            if isinstance(part, PageFile):
                pupil.save(part)
            elif part.line == "mindbus dev glossary.py":
                pupil.start(part.line)
                pupil.until_ready("glossary")
            elif not part.line.startswith(ELSEWHERE):
                line = part.line.replace("http://localhost:8000/v1", endpoint)
                said[part.line] = pupil.type_line(line)
                if part.line == "mindbus dialogues end anna":
                    _await_unit(pupil)
    finally:
        pupil.leave()

    assert "subagent-librarian" in said["mindbus status"]
    assert "1 passed" in said["python -m pytest -q test_glossary.py"]
    assert "term_explained" in said["mindbus events --topic processed"]
    assert "data subject request" in next(text for line, text in said.items() if "chat --user boris" in line)
    assert "completed" in said["mindbus process run note --input brief.md"]
    assert (tmp_path / "my-team" / "note.md").stat().st_size > 0
    assert any("search_memory" in text for line, text in said.items() if "history show" in line)


def _await_unit(pupil: Newcomer) -> None:
    """Wait until the agent's unit is found: between the end of a dialogue and that lie a queue and an embedding."""
    from mindbus.testing.wait import eventually

    eventually(lambda: "data subject" in pupil.run("mindbus", "memory", "search", "DSR"), 60, "the term is in memory")


def test_both_languages_have_the_same_files() -> None:
    english, russian = (files_of(page) for page in PAGES.values())

    assert english == russian


def test_the_files_are_those_of_a_reader_who_has_nothing() -> None:
    files = files_of(PAGES["en"])

    assert [name for name in files if re.search(r"\.(py|yaml|md)$", name)] == list(files)

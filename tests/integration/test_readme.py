"""What README tells a newcomer to copy works as it stands, in both languages."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.newcomer import ROOT, Newcomer, PageCommand, PageFile, files_of, parts_of

README, RUSSIAN = ROOT / "README.md", ROOT / "README.ru.md"
FILES = files_of(README)
# Run by CI itself before the tests, or by `make compose-smoke`; or with a model that is not here.
ELSEWHERE = ("make ", ". .venv/bin/activate", "docker compose ", "export MINDBUS_LLM_BASE_URL=")
# They go on until somebody ends them: tested one by one below.
GO_ON = ("mindbus dev ", "mindbus worker ")


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory, broker: object) -> Iterator[Newcomer]:
    folder = tmp_path_factory.mktemp("newcomer")
    shutil.copytree(ROOT / "config" / "briefs", folder / "config" / "briefs")
    somebody = Newcomer(folder)
    somebody.save(*(PageFile(name, text) for name, text in FILES.items()))
    yield somebody
    somebody.leave()


@pytest.mark.parametrize("page", [README, RUSSIAN], ids=["en", "ru"])
def test_it_is_short_and_begins_with_two_commands(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert len(text.splitlines()) <= 200
    assert re.search(r"```sh\nmake demo .*\nmake up .*\n```", text.split("##")[0])


def test_both_languages_have_the_same_files_and_commands() -> None:
    english, russian = ([part for part in parts_of(page) if _is_common(part)] for page in (README, RUSSIAN))

    assert english == russian


@pytest.mark.parametrize("page", [README, RUSSIAN, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(((?!http|#|mailto)[^)#\s]+)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)

    assert not [target for target in targets if not (page.parent / target).exists()]


def test_the_program_prints_an_answer_on_a_fresh_fleet(newcomer: Newcomer) -> None:
    newcomer.run("mindbus", "up", "-d")

    told = newcomer.run(sys.executable, "hello_bus.py")

    answer, heard = told.splitlines()
    assert answer.removeprefix("answer: ").startswith(heard.removeprefix("heard: ")[:20])
    assert len([line for line in FILES["hello_bus.py"].splitlines() if line]) <= 10


def test_every_command_works_in_its_order(newcomer: Newcomer) -> None:
    said: dict[str, str] = {}
    for part in parts_of(README):
        if isinstance(part, PageCommand) and not part.line.startswith((*ELSEWHERE, *GO_ON)):
            if part.line == "mindbus watch --count 1":
                newcomer.start(part.line)
            elif part.line not in ("mindbus down", "mindbus send counter:GetTally --wait --json"):
                said[part.line] = newcomer.type_line(part.line)

    assert "completed" in said["mindbus process run article --input config/briefs/en.md"]
    assert "final" in said["mindbus artifacts ls"]
    assert (newcomer.folder / "article.md").stat().st_size > 0
    assert "0 failed" in said["mindbus doctor"]
    assert said["mindbus status"].startswith("MindBus is ready.")
    assert "budget" in said['mindbus episodes search "budget" --chat anna']


def test_a_worker_of_ones_own_counts_answers_and_is_restarted_when_its_file_changes(newcomer: Newcomer) -> None:
    file = newcomer.folder / "counter.py"
    with newcomer.running("mindbus", "dev", "counter.py"):
        first = newcomer.until_ready("counter")
        before = newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]
        (newcomer.folder / "note.txt").write_text("Заметка")
        put = ("mindbus", "artifacts", "put", "note.txt", "--type", "note", "--trace", "notes", "--as", "agent.a")
        newcomer.json(*put)

        after = newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]

        assert after["artifacts"] == before["artifacts"] + 1
        assert after["size_bytes"] == before["size_bytes"] + len("Заметка".encode())

        file.write_text(
            file.read_text().replace("self.artifacts, self.size_bytes = 0, 0", "self.artifacts, self.size_bytes = 7, 0")
        )
        newcomer.until_ready("counter", other_than=first)
        assert newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]["artifacts"] == 7


def test_a_worker_of_ones_own_runs_by_module_and_class(newcomer: Newcomer) -> None:
    with newcomer.running("mindbus", "worker", "counter:CounterWorker"):
        newcomer.until_ready("counter")
        assert "artifacts" in newcomer.json("mindbus", "send", "counter:GetTally", "--wait")["result"]


def _is_common(part: PageFile | PageCommand) -> bool:
    """Whether it is the same in every language; what people say to the assistant is not."""
    return not (isinstance(part, PageCommand) and '"' in part.line)

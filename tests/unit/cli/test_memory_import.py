from pathlib import Path

import pytest

from tests.command_line import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("# Plan", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-chars", "100"], "max_chars"),
        (["--max-chars", "200", "--overlap-chars", "150"], "more than half"),
        (["--meta", "k"], "is not K=V"),
        (["--visibility", "public", "--reader", "user.anna"], "readers are named where"),
        (["--trace", "a b"], "is not a trace"),
        (["--encoding", "klingon"], "there is no encoding 'klingon'; try utf-8"),
    ],
)
def test_an_import_that_cannot_be_is_refused_before_anything_is_read(
    shell: Shell, documents: Path, options: list[str], words: str
) -> None:
    ended = shell.run("memory", "import", str(documents), *options)

    assert ended.returncode == 2
    assert words in " ".join(ended.stderr.split())


def test_a_folder_without_documents_is_a_mistake(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".hidden.md").write_text("# Plan", encoding="utf-8")
    (tmp_path / "empty" / "link.md").symlink_to(tmp_path / "empty" / ".hidden.md")

    ended = shell.run("memory", "import", str(tmp_path / "empty"))

    assert ended.returncode == 2
    assert "nothing to import" in ended.stderr


def test_without_a_bus_it_says_so(shell: Shell, documents: Path) -> None:
    ended = shell.run("memory", "import", str(documents), "--json")

    assert ended.returncode == 1
    assert '"code": "unavailable"' in ended.stdout

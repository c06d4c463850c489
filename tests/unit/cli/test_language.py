"""The command line speaks Russian where its reader does; one catalogue has all of it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group
from typer.testing import CliRunner, Result

from mindbus.cli.language import choose_language, help_messages, messages_of, russian_form, translate
from mindbus.cli.main import COMMANDS, _app, app

ROOT = Path(__file__).parents[3]
CATALOGUE = messages_of("ru")
# Texts of libraries, and names that only users of a catalogue see.
NOT_OURS = {
    "Arguments",
    "Options",
    "Commands",
    "Error",
    "Show this message and exit.",
    "Install completion for the current shell.",
    "Show completion for the current shell, to copy it or customize the installation.",
}


@pytest.fixture(autouse=True)
def _as_chosen() -> Iterator[None]:
    yield
    choose_language(None)


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner(env={"COLUMNS": "250", "LC_ALL": None, "LC_MESSAGES": None, **environment}).invoke(app, arguments)


def texts_of(command: Any) -> Iterator[str]:
    yield from help_messages(command.help)
    for option in command.params:
        yield from help_messages(getattr(option, "help", None))
    for subcommand in getattr(command, "commands", {}).values():
        yield from texts_of(subcommand)


def texts_of_help() -> set[str]:
    groups = [get_group(_app(name, place)) for name, place in COMMANDS.items()]
    summaries = {text for place in COMMANDS.values() for text in (place.summary, place.panel)}
    return summaries | {text for group in [*groups, get_group(app)] for text in texts_of(group)}


def texts_in_code() -> str:
    """All literals of the command line, one a line."""
    paths = [*(ROOT / "mindbus").rglob("*.py"), *(ROOT / "mindbus_fleet").rglob("*.py")]
    paths += [*(ROOT / "storage_service").rglob("*.py")]
    found: list[str] = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                found.append("".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values))
    return "\n".join(found)


def test_help_is_in_russian_but_for_what_came_just_now() -> None:
    missing = texts_of_help() - CATALOGUE.keys()

    assert len(missing) <= 0.05 * len(texts_of_help()), sorted(missing)


def test_the_catalogue_has_nothing_that_the_code_no_longer_says() -> None:
    code = set(re.findall(r"\w{4,}", texts_in_code()))
    stale = [text for text in CATALOGUE.keys() - texts_of_help() - NOT_OURS if set(re.findall(r"\w{4,}", text)) - code]

    assert stale == []


def test_translations_fill_in_what_there_is() -> None:
    for english, russian in CATALOGUE.items():
        holes = {int(number) for number in re.findall(r"\{(\d)", russian)}
        assert holes <= set(range(1, english.count("{}") + 1)), english


@pytest.mark.parametrize("environment", [{"LANG": "ru_RU.UTF-8"}, {"LANG": "en_US", "LC_ALL": "ru_RU.UTF-8"}])
def test_the_environment_chooses_the_language(tmp_path: Path, environment: dict[str, str]) -> None:
    said = run("down", MINDBUS_DATA_DIR=str(tmp_path), **environment).stdout

    assert said.startswith(f"Здесь ничего не работает. Искал в {tmp_path}")


def test_an_option_comes_before_the_environment(tmp_path: Path) -> None:
    folder = {"MINDBUS_DATA_DIR": str(tmp_path)}

    assert "Nothing runs here" in run("--lang", "en", "down", LANG="ru_RU.UTF-8", **folder).stdout
    assert "не работает" in run("--lang", "ru", "down", LANG="C", **folder).stdout
    assert run("--lang", "fr", "down").exit_code == 2


def test_help_speaks_russian_and_leaves_what_is_typed() -> None:
    shown = run("--lang", "ru", "artifacts", "get", "--help").stdout

    assert "Получает байты артефакта" in shown
    assert "Примеры" in shown
    assert "mindbus artifacts get art_0192… -o article.md" in shown
    assert "Парк" in run("--lang", "ru", "--help").stdout


def test_json_is_the_same_in_every_language(tmp_path: Path) -> None:
    folder = {"MINDBUS_DATA_DIR": str(tmp_path)}

    assert (
        run("--lang", "ru", "down", "--json", **folder).stdout == run("--lang", "en", "down", "--json", **folder).stdout
    )


@pytest.mark.parametrize(
    ("english", "russian"),
    [
        ("Stopped.", "Остановлено."),
        ("MindBus is up: 22 workers in 2 processes.", "MindBus работает: 22 исполнителя, 2 процесса."),
        ("there is no command 'x'; did you mean up?", "нет команды 'x'; может быть, up?"),
        (
            "task_id: not a task id like task_0192…; `mindbus tasks ls` lists them",
            "task_id: не ID задачи вида task_0192…; список: `mindbus tasks ls`",
        ),
        ("Something that nobody has translated", "Something that nobody has translated"),
    ],
)
def test_messages_are_translated_with_what_is_filled_in(english: str, russian: str) -> None:
    choose_language("ru")

    assert translate(english) == russian


@pytest.mark.parametrize(
    ("number", "form"), [(1, "файл"), (2, "файла"), (5, "файлов"), (11, "файлов"), (21, "файл"), (112, "файлов")]
)
def test_a_noun_takes_the_form_of_its_number(number: int, form: str) -> None:
    assert russian_form(number, ["файл", "файла", "файлов"]) == form

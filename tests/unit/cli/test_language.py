"""The command line speaks Russian where its reader does; one catalogue has all of it."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from inspect import cleandoc
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group
from typer.testing import CliRunner, Result

import mindbus.bus
import mindbus_fleet
from bus_schema.envelope import Envelope, Kind
from bus_schema.model_calls import SaidToModel
from bus_schema.users import UserRecord
from config.recorded_runs import shipped_recording
from mindbus.cli.errors import UsageError
from mindbus.cli.events import _show_envelope as show_envelope
from mindbus.cli.language import choose_language, help_messages, messages_of, russian_form, translate
from mindbus.cli.main import COMMANDS, _app, app
from mindbus.cli.tasks import _show as show_task
from mindbus.cli.user_records import _show as show_user
from mindbus.errors import MindBusError
from mindbus_fleet.cli.model_calls import show_full

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

# By the function: which of its arguments are texts that it translates.
SAID = {
    **dict.fromkeys(("say", "note", "translate", "CommandError", "UsageError", "BadParameter", "CheckResult"), (0,)),
    "PlannedStep": (0,),
    "show_result": (1,),
    "show_table": (0, 2),
    "table": (0, 2),
}
RAISED_IN = ("mindbus.errors", "mindbus.bus.", "mindbus.accounts", "mindbus.management", "mindbus_fleet")
NAMES = {"Python", "RabbitMQ", "sha"}


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


def texts_of_node(node: ast.AST) -> Iterator[str]:
    """The literals that an argument may be, with 7 for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from (*texts_of_node(one), *texts_of_node(other))
        case ast.Tuple(elts=parts):
            yield from (text for part in parts for text in texts_of_node(part))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            rights = tuple(texts_of_node(right)) or ("7",)
            yield from (one + other for one in texts_of_node(left) for other in rights)


def texts_said() -> Iterator[str]:
    """What commands print in words of their own, and what the errors say that commands meet."""
    for path in (*(ROOT / "mindbus" / "cli").rglob("*.py"), *(ROOT / "mindbus_fleet").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                title = (keyword.value for keyword in node.keywords if keyword.arg == "title")
                for said in (*(node.args[place] for place in SAID.get(name, ()) if place < len(node.args)), *title):
                    yield from texts_of_node(said)
    for package in (mindbus.bus, mindbus_fleet):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("hatch_build"):
                importlib.import_module(module.name)
    kinds = [MindBusError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__module__.startswith(RAISED_IN) and "__init__" not in vars(kind) and kind is not UsageError:
            yield cleandoc(kind.__doc__ or "")


def test_whatever_commands_say_is_in_russian() -> None:
    choose_language("ru")
    words = re.compile(r"[A-Za-z]{3,}")

    said = {text for text in texts_said() if not NAMES.issuperset(words.findall(text))}
    missing = sorted(text for text in said if translate(text) == text)

    assert len(said) > 300
    assert missing == []


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
        # "{} files in {}" is a number of files.
        (
            "Storage keeps files in a folder that no gateway serves",
            "Storage keeps files in a folder that no gateway serves",
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


@pytest.mark.parametrize(
    "words",
    [
        "Read the notes. Here: the door code is 4711.",
        "task_1: Buy milk (also bread) (open, anna)",
        "The milk is removed",
        "started the washing",
        "reason: it rains",
        "tools: a hammer",
        "failed: the oven",
    ],
)
def test_what_users_may_have_written_stays(words: str) -> None:
    choose_language("ru")

    assert translate(words) == words


def test_lines_with_users_words_translate_their_labels_alone(capsys: pytest.CaptureFixture[str]) -> None:
    # As an anchored message of the catalogue has it, too.
    words = "Again, attempt 2, now: kept by anna"
    choose_language("ru")
    assert translate(words) != words
    now = datetime.now(UTC)
    _label, recording = shipped_recording()
    manifest, call = recording.calls[0]
    said = SaidToModel(role="user", content=words)
    call = call.model_copy(update={"prompt": (said,), "answer": None, "tools": ("clock",), "failure": words})

    show_full([(manifest, call)])
    assert capsys.readouterr().out.splitlines()[1:] == ["инструменты: clock", "-- user", words, f"не удалось: {words}"]
    show_task({"id": "task_1", "text": words, "status": "open", "due": "2026-12-01", "owner": None})
    assert capsys.readouterr().out == f"task_1: {words} (open, никто, срок 2026-12-01)\n"
    show_user(UserRecord(user_id="anna", name=words, names=("Anya",), version=1, changed_at=now))
    assert capsys.readouterr().out.splitlines()[0] == f"anna: {words} (также Anya)"
    ids = {"id": "msg_1", "correlationid": "msg_1", "source": "/mb/gateway/1", "mbrequester": "user.anna"}
    told = {"type": "mb.evt.task.added.v1", "mbkind": Kind.EVENT, "time": now, "data": {"text": words}}
    show_envelope(Envelope.model_validate(ids | told))
    assert capsys.readouterr().out.endswith(f"text: {words}\n")
